"""Windows: which candidate serves which message sizes.

At each tuned size the fastest candidate wins. Between two sizes with different winners the window changes where their
simulated times cross, found by halving. A runtime that holds few programs gets fewer windows: neighbours are merged
by dynamic programming so that the greatest slow-down at any tuned size is the least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

_HALVINGS = 5


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Tuned sizes `first` … `last` (positions), served by one candidate."""

    first: int
    last: int
    candidate: int


def choose_spans(times: Sequence[Sequence[float]], most: int) -> list[Span]:
    """At most `most` spans over all sizes; times[size][candidate] in µs, infinity where not known.

    The fastest at each size when that needs no more spans than `most`.
    """
    winners = [min(range(len(row)), key=lambda candidate: (row[candidate], candidate)) for row in times]
    spans: list[Span] = []
    for position, winner in enumerate(winners):
        if spans and spans[-1].candidate == winner:
            spans[-1] = msgspec.structs.replace(spans[-1], last=position)
        else:
            spans.append(Span(first=position, last=position, candidate=winner))
    return spans if len(spans) <= most else _merge(times, most)


def _merge(times: Sequence[Sequence[float]], most: int) -> list[Span]:
    count = len(times)
    best = [min(row) for row in times]
    cost: dict[tuple[int, int], tuple[float, int]] = {}
    for first in range(count):
        worst = [0.0] * len(times[0])
        for last in range(first, count):
            worst = [max(w, time / best[last]) for w, time in zip(worst, times[last], strict=True)]
            cost[first, last] = min((w, candidate) for candidate, w in enumerate(worst))
    # table[n][end]: the least greatest slow-down of n spans over sizes 0 … end, with where the last span starts
    table: list[list[tuple[float, int]]] = [[(cost[0, end][0], 0) for end in range(count)]]
    for _ in range(1, most):
        before = table[-1]
        table.append(
            [
                min([before[end], *((max(before[cut - 1][0], cost[cut, end][0]), cut) for cut in range(1, end + 1))])
                for end in range(count)
            ]
        )
    spans: list[Span] = []
    end, level = count - 1, most - 1
    while end >= 0:
        first = table[level][end][1]
        spans.append(Span(first=first, last=end, candidate=cost[first, end][1]))
        end, level = first - 1, max(level - 1, 0)
    return spans[::-1]


def find_crossing(low: int, high: int, faster_low: Callable[[int], bool]) -> int:
    """The first size of the upper window, between two sizes; `faster_low(size)`: the lower window's program wins."""
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        if middle in (low, high):
            break
        if faster_low(middle):
            low = middle
        else:
            high = middle
    return high

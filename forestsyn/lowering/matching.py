"""Which receive peer shares a threadblock with which send peer: a bipartite matching of maximum weight.

Method. The Hungarian algorithm by shortest augmenting paths with potentials (Kuhn 1955, Munkres 1957), O(n²·m), on
the square or wide matrix of costs −weight. A rank has few peers, so the matrices are small.
"""

from __future__ import annotations

from collections.abc import Sequence


def match_heaviest(weights: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pairs (row, column) of a matching with the largest total weight; pairs of weight 0 are left out.

    weights: rows of equal length, all entries ≥ 0. Deterministic.
    """
    rows = [row for row, entries in enumerate(weights) if any(entries)]
    columns = [column for column, entries in enumerate(zip(*weights, strict=True)) if any(entries)]
    if not rows:
        return []
    costs = [[-weights[row][column] for column in columns] for row in rows]
    if len(rows) <= len(columns):
        chosen = [(row, column) for column, row in enumerate(_assign(costs))]
    else:
        chosen = list(enumerate(_assign([list(entries) for entries in zip(*costs, strict=True)])))
    pairs = [(rows[row], columns[column]) for row, column in chosen if row >= 0 and column >= 0]
    return sorted((row, column) for row, column in pairs if weights[row][column] > 0)


def _assign(costs: list[list[int]]) -> list[int]:
    """The row assigned to each column (−1: none) in a cheapest assignment of every row; no more rows than columns."""
    rows, columns = len(costs), len(costs[0])
    row_potential = [0] * rows
    column_potential = [0] * columns
    row_of = [-1] * columns
    for row in range(rows):
        distance: list[int | None] = [None] * columns
        previous = [-1] * columns
        done: list[int] = []
        reached, column, length = row, -1, 0
        while True:
            _relax(costs[reached], row_potential[reached], column_potential, distance, previous, done, column, length)
            length, column = min(
                (reach, candidate)
                for candidate, reach in enumerate(distance)
                if reach is not None and candidate not in done
            )
            if row_of[column] < 0:
                break
            done.append(column)
            reached = row_of[column]
        row_potential[row] += length
        for seen in done:
            reach = distance[seen]
            assert reach is not None
            row_potential[row_of[seen]] += length - reach
            column_potential[seen] -= length - reach
        while column >= 0:
            before = previous[column]
            row_of[column] = row_of[before] if before >= 0 else row
            column = before
    return row_of


def _relax(
    costs: list[int],
    row_potential: int,
    column_potential: list[int],
    distance: list[int | None],
    previous: list[int],
    done: list[int],
    via: int,
    length: int,
) -> None:
    """Shorten the ways to all open columns by those that pass the row just reached through column `via`."""
    for column, cost in enumerate(costs):
        if column in done:
            continue
        reach = length + cost - row_potential - column_potential[column]
        known = distance[column]
        if known is None or reach < known:
            distance[column] = reach
            previous[column] = via

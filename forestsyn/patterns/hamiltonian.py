"""Rows of ranks in which each reaches the next: Hamiltonian paths and rings, by search that keeps links even.

Method. Depth first from `start`. A step goes to the rank whose path is then the least loaded; of equal ones, to that
with the fewest links, with the fewest ways on (Warnsdorff's rule, on sparse networks), and with the least used
connection, since threadblocks serve different connections in parallel; then in rank order, unless `order` prefers
another. The search is repeated with growing limits on the load of any link, so that the first row found is one whose
busiest link is about as little loaded as possible. Each repetition visits a limited number of rows, since the problem
is hard; what is found is right, what exists may be missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.patterns.network import Loads, Network, Path

#: Partial rows that one search looks at, per limit.
_ROWS_MAXIMUM = 400
#: Limits tried before the search goes without one.
_LIMITS_MAXIMUM = 5
#: Choices up to which it pays to look one step further.
_SPARSE = 8


class Row:
    """ranks: in order. paths: of each step to the next rank; one more than steps when the row closes to a ring."""

    def __init__(self, ranks: list[int], paths: list[Path]) -> None:
        self.ranks = ranks
        self.paths = paths


def find_row(
    network: Network,
    loads: Loads,
    members: Sequence[int],
    start: int,
    end: int | None,
    order: Sequence[int] = (),
    *,
    careful: bool = True,
) -> Row | None:
    """A row from `start` through all `members` to `end`; adds its paths to `loads`.

    end: None for any; equal to `start` for a ring. order: position of each rank in a preference, rank order if empty.
    careful: follow Warnsdorff's rule.
    """
    limits: list[int | None] = [*_limits(network, loads, members), None]
    for limit in limits:
        search = _Search(network, loads, members, end, limit, order, careful=careful)
        if search.extend(start):
            return Row(search.ranks, search.paths)
    return None


def _limits(network: Network, loads: Loads, members: Sequence[int]) -> list[int]:
    """Loads that single steps would lead to, the lowest first, from the least with which every member can be left."""
    steps = {}
    inside = set(members)
    for source in members:
        heads = [head for head in network.neighbours(source) if head in inside]
        costs = [best[0] for head in heads if (best := loads.best(source, head))]
        steps[source] = sorted(set(costs))
    least = max((costs[0] for costs in steps.values() if costs), default=0)
    found = sorted({cost for costs in steps.values() for cost in costs if cost >= least})
    return found[:_LIMITS_MAXIMUM]


class _Search:
    def __init__(
        self,
        network: Network,
        loads: Loads,
        members: Sequence[int],
        end: int | None,
        limit: int | None,
        order: Sequence[int],
        *,
        careful: bool,
    ) -> None:
        self.network = network
        self.loads = loads
        self.end = end
        self.limit = limit
        self.careful = careful
        self.order = order or range(network.rank_count)
        self.count = network.rank_count
        self.left = set(members)
        self.rows = _ROWS_MAXIMUM
        self.ranks: list[int] = []
        self.paths: list[Path] = []

    def extend(self, rank: int) -> bool:
        """Continue the row at `rank`; False, with everything undone, when nothing follows."""
        self.left.discard(rank)
        self.ranks.append(rank)
        if not self.left and self._close(rank):
            return True
        for following, path in self._choices(rank):
            if self.rows <= 0:
                break
            self.rows -= 1
            self.loads.add(path)
            self.paths.append(path)
            if self.extend(following):
                return True
            self.paths.pop()
            self.loads.add(path, -1)
        self.ranks.pop()
        self.left.add(rank)
        return False

    def _close(self, rank: int) -> bool:
        if self.end is None or self.end == rank:
            return True
        if self.end != self.ranks[0]:
            return False
        best = self.loads.best(rank, self.end)
        if best is None or (self.limit is not None and best[0] > self.limit):
            return False
        self.paths.append(best[1])
        self.loads.add(best[1])
        return True

    def _choices(self, rank: int) -> list[tuple[int, Path]]:
        found = []
        heads = [head for head in self.network.neighbours(rank) if head in self.left]
        for head in heads:
            if head == self.end and len(self.left) > 1:
                continue
            best = self.loads.best(rank, head)
            if best is None or (self.limit is not None and best[0] > self.limit):
                continue
            path = best[1]
            onward = self._onward(head) if self.careful and len(heads) <= _SPARSE else 0
            uses = self.loads.uses[path.vertices[0], path.vertices[-1]]
            ahead = (self.order[head] - self.order[rank]) % self.count
            found.append((best[0], len(path.links), onward, uses, ahead, head, path))
        found.sort(key=lambda choice: choice[:6])
        return [(head, path) for *_, head, path in found]

    def _onward(self, rank: int) -> int:
        """Steps open to a rank: those with few are best taken first, or they are never reached."""
        count = 0
        for head in self.network.neighbours(rank):
            if head in self.left:
                best = self.loads.best(rank, head)
                count += best is not None and (self.limit is None or best[0] <= self.limit)
        return count

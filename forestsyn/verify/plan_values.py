"""What every cell holds, by symbolic execution that counts contributions, and what the collective promises.

A value is one integer: key · 2ⁿ + set of ranks, for n ranks; the key names the cell of the message and the call. A
sum is defined for equal keys and disjoint sets only, so each contribution counts once. A value of an earlier call
has another key and is found out.
"""

from __future__ import annotations

from collections.abc import Iterator

from forestsyn.ir.plan import Plan
from forestsyn.verify.plan_actions import Machine
from forestsyn.verify.plan_limits import COLLECTIVES

Value = int | None
_REDUCTIONS = ("allreduce", "reduce", "reduce-scatter")


class Values:
    """The values of one plan. collective: None where the verifier does not know it; then nothing is wrong."""

    def __init__(self, plan: Plan, machine: Machine) -> None:
        self.collective = COLLECTIVES.get(plan.collective)
        self.ranks = len(plan.gpus)
        self._machine = machine
        own = machine.input_cells
        self._keys = {"allgather": own * self.ranks, "alltoall": own * self.ranks}.get(self.collective or "", own)

    def initial(self, rank: int, cell: int, call: int) -> int:
        """What the caller of `rank` puts into cell `cell` of its input."""
        first = rank * self._machine.input_cells if self.collective in ("allgather", "alltoall") else 0
        return (call * self._keys + first + cell) << self.ranks | 1 << rank

    def add(self, left: int, right: int) -> tuple[Value, str]:
        """The sum, or None and what is wrong with it."""
        if (left ^ right) >> self.ranks:
            return None, f"adds {self.describe(right)} to {self.describe(left)}"
        twice = left & right & ((1 << self.ranks) - 1)
        if twice:
            return None, f"adds {self._members(twice)} a second time to {self.describe(left)}"
        return left | right, ""

    def roots(self) -> range | tuple[None]:
        """The roots that the collective may have."""
        return range(self.ranks) if self.collective in ("broadcast", "reduce") else (None,)

    def expected(self, root: int | None, call: int) -> Iterator[tuple[int, int, int]]:
        """(rank, cell of its output, value) for all that the collective promises."""
        everyone, cells, shard = (1 << self.ranks) - 1, self._machine.output_cells, self._machine.input_cells
        for rank in range(self.ranks):
            if self.collective is None or (self.collective == "reduce" and rank != root):
                continue
            for cell in range(cells):
                key, members = cell, everyone
                if self.collective == "reduce-scatter":
                    key = rank * cells + cell
                elif self.collective == "allgather":
                    members = 1 << cell // shard
                elif self.collective == "broadcast":
                    members = 1 << (root or 0)
                elif self.collective == "alltoall":
                    part = cells // self.ranks
                    source, place = divmod(cell, part)
                    key, members = source * shard + rank * part + place, 1 << source
                yield rank, cell, (call * self._keys + key) << self.ranks | members

    def describe(self, value: Value) -> str:
        """`value` in words."""
        if value is None:
            return "nothing"
        call, key = divmod(value >> self.ranks, self._keys)
        per_chunk = self._machine.elements // self._machine.unit
        chunk = f"chunk {key // per_chunk} of call {call + 1}"
        members = self._members(value & ((1 << self.ranks) - 1))
        return f"{chunk} summed over {members}" if self.collective in _REDUCTIONS else f"{chunk} from {members}"

    def _members(self, members: int) -> str:
        found = [rank for rank in range(self.ranks) if members >> rank & 1]
        if len(found) == self.ranks > 1:
            return "all ranks"
        shown = ", ".join(str(rank) for rank in found[:8])
        return f"{'rank' if len(found) == 1 else 'ranks'} {shown}{', …' if len(found) > 8 else ''}"

"""What is shown: one frozen value that holds all that pictures and the page need."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from forestsyn.ir.forest import Direction, Forest
from forestsyn.ir.topology import Topology
from forestsyn.show.series import Curve


class CutView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bottleneck cut of one phase.

    inside: topology indices of its vertices. direction: OUT where data must leave `inside`, IN where it must enter.
    text: the sentence for people. bandwidth: GB/s across, exact.
    """

    inside: frozenset[int]
    direction: Direction
    text: str
    bandwidth: Fraction


class Figure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A headline: its name, the value as text, its unit, and what it is measured against."""

    name: str
    value: str
    unit: str
    against: str


class PhaseView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """One phase of the collective.

    loads: for each link of the topology the time it needs over the time of the bound (1 is the bound), exact.
    """

    name: str
    forest: Forest
    loads: tuple[Fraction, ...]


class View(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, eq=False):
    """Everything about one collective on one topology.

    sentences: the bottlenecks and the ring, for people. load_over_bound: of all phases together.
    program, made: name and value rows. verified: what has been checked. curves_note: why there are no curves, or what
    they hold; `program_note` likewise.
    windows: message sizes and what serves them, where that was tuned.
    """

    title: str
    topology: Topology
    cut: CutView
    figures: tuple[Figure, ...]
    sentences: tuple[tuple[str, str], ...]
    phases: tuple[PhaseView, ...]
    load_over_bound: Fraction
    curves: tuple[Curve, ...]
    curves_note: str
    windows: tuple[tuple[str, str], ...]
    program: tuple[tuple[str, str], ...]
    program_note: str
    verified: str
    made: tuple[tuple[str, str], ...]

"""What is measured: topologies by name, with the time and depth that the project wants to reach."""

from __future__ import annotations

import dataclasses
from pathlib import Path

_TOPOLOGIES = Path(__file__).parent / "topologies"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """spec: as `forestsyn forest` takes it. family: workloads whose growth is compared, in order of size.

    goal_seconds, goal_depth: what is to be reached; None where nothing was set. quick: part of `--quick`.
    """

    name: str
    spec: str
    family: str = ""
    goal_seconds: float | None = None
    goal_depth: int | None = None
    quick: bool = False


def _file(name: str) -> str:
    return str(_TOPOLOGIES / f"{name}.yaml")


def _a100(hosts: int, seconds: float | None = None, depth: int | None = None, quick: bool = False) -> Workload:
    return Workload(
        name=f"a100-x{hosts}",
        spec=f"dgx-a100:{hosts}",
        family="A100 hosts",
        goal_seconds=seconds,
        goal_depth=depth,
        quick=quick,
    )


WORKLOADS = (
    _a100(2, 0.1, 5, quick=True),
    _a100(4, 0.1, 4, quick=True),
    _a100(8, 0.2, 5, quick=True),
    _a100(16, quick=True),
    _a100(32, quick=True),
    _a100(64),
    _a100(128, 3, 9, quick=True),
    _a100(256),
    _a100(2048, 60, 14),
    Workload(name="a100-x128-broken", spec=_file("dgx-a100-128-broken"), goal_seconds=5, goal_depth=None, quick=True),
    Workload(name="a100-x4-weak", spec=_file("dgx-a100-4-weak"), quick=True),
    Workload(name="mi250-x1", spec="mi250:1", family="MI250 hosts", quick=True),
    Workload(name="mi250-x2", spec="mi250:2", family="MI250 hosts", goal_seconds=0.5, goal_depth=12, quick=True),
    Workload(name="mi250-x4", spec="mi250:4", family="MI250 hosts", goal_seconds=1, goal_depth=14, quick=True),
    Workload(name="mi250-x8", spec="mi250:8", family="MI250 hosts"),
    Workload(name="mi250-x16", spec="mi250:16", family="MI250 hosts"),
    Workload(name="mi250-x64", spec="mi250:64", family="MI250 hosts"),
    Workload(name="torus-8x8", spec="torus:8x8", family="torus n x n", goal_seconds=0.2, goal_depth=10, quick=True),
    Workload(name="torus-16x16", spec="torus:16x16", family="torus n x n", goal_seconds=1, goal_depth=18, quick=True),
    Workload(name="torus-4x4x4", spec="torus:4x4x4", goal_seconds=0.2, goal_depth=8, quick=True),
    Workload(name="torus-4x8", spec="torus:4x8", quick=True),
    Workload(name="mesh-8x8", spec="mesh:8x8", goal_seconds=0.3, quick=True),
    Workload(name="tpu-v4-8x8x8", spec="tpu-v4:8x8x8"),
    Workload(name="superpod-x127", spec="dgx-h100-superpod:127"),
    Workload(name="superpod-x127-4to1", spec=_file("superpod-127-oversubscribed"), goal_seconds=6, quick=True),
    Workload(name="h100-x32", spec="dgx-h100:32", family="H100 hosts"),
    Workload(name="h100-x128", spec="dgx-h100:128", family="H100 hosts"),
    Workload(name="mi300x-x32", spec="mi300x:32", family="MI300X hosts"),
    Workload(name="mi300x-x128", spec="mi300x:128", family="MI300X hosts"),
    Workload(name="gb200-x2", spec="gb200-nvl72:2"),
    Workload(name="ndv2-x2", spec="ndv2:2", quick=True),
    Workload(name="dgx2-x2", spec="dgx2:2", quick=True),
    Workload(name="hypercube-6", spec="hypercube:6", quick=True),
    Workload(name="rail-optimized-16x8", spec="rail-optimized:16x8", quick=True),
    Workload(name="leaf-spine-4x8", spec="leaf-spine:4x8", quick=True),
    Workload(name="fat-tree-4", spec="fat-tree:4", quick=True),
    Workload(name="fat-tree-8", spec="fat-tree:8"),
    Workload(name="dragonfly-4x3x2", spec="dragonfly:4x3x2", quick=True),
    Workload(name="dragonfly-9x4x2", spec="dragonfly:9x4x2"),
)


def chosen_workloads(names: list[str], quick: bool) -> list[Workload]:
    """The workloads called `names` in the order of the table, all without any names; only quick ones if asked.

    Raises ValueError for a name that does not exist.
    """
    known = {workload.name for workload in WORKLOADS}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no workload {name!r}; there are {', '.join(sorted(known))}")
    return [workload for workload in WORKLOADS if (workload.name in names if names else workload.quick or not quick)]

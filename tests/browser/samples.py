"""What the browser is shown."""

from __future__ import annotations

import msgspec

from forestsyn.frontend import load_topology
from forestsyn.ir.topology import Topology
from forestsyn.pipeline.show_times import TunedCurves
from forestsyn.show.series import Curve, CurveKind

#: Pages by name: two hosts, a direct network, many alike hosts without curves, and names made to break out.
SAMPLES = ("hosts", "torus", "many", "hostile")

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"

_SIZES = tuple(1 << power for power in range(10, 35, 2))


def _curve(name: str, kind: CurveKind, start: float, algbw: float) -> Curve:
    times = tuple(start + size / algbw / 1e3 for size in _SIZES)
    return Curve(name=name, sizes=_SIZES, times_us=times, kind=kind)


CURVES = (
    _curve("tuned", CurveKind.TUNED, 8, 169),
    _curve("forest, 16 chunks, Simple", CurveKind.CANDIDATE, 60, 170),
    _curve("all-pairs, LL", CurveKind.CANDIDATE, 8, 40),
    _curve("double binary tree, LL128", CurveKind.CANDIDATE, 20, 95),
    _curve(f"ring {HOSTILE}", CurveKind.CANDIDATE, 45, 100),
    _curve("NCCL ring", CurveKind.RING, 40, 105),
    _curve("bound of any schedule", CurveKind.BOUND, 0, 173.33),
)

TUNED = TunedCurves(curves=CURVES, note=f"Given by hand {HOSTILE}.", windows=(("0 B and more", HOSTILE),))


def sample_topology(name: str) -> Topology:
    """The network of a sample."""
    specs = {"hosts": "dgx-a100:2", "torus": "torus:4x4", "many": "dgx-h100-superpod:32", "hostile": "dgx-a100:2"}
    topology = load_topology(specs[name])
    if name != "hostile":
        return topology
    vertices = tuple(
        msgspec.structs.replace(vertex, name=f"{HOSTILE}{number}") for number, vertex in enumerate(topology.vertices)
    )
    return msgspec.structs.replace(topology, name=HOSTILE, vertices=vertices, notes=(HOSTILE,))

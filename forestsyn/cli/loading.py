"""Reading the topology that a verb was given."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from forestsyn.cli.import_options import import_request

if TYPE_CHECKING:
    from forestsyn.ir.topology import Topology
    from forestsyn.pipeline.stages import Observer


def load_timed(spec: str, observer: Observer | None = None) -> tuple[Topology, dict[str, float]]:
    """The topology of a file or catalog name, and the seconds that took as the first stage. Raises InputError."""
    from forestsyn.frontend import load_topology

    start = time.perf_counter()
    topology = load_topology(spec, import_request())
    seconds = time.perf_counter() - start
    if observer is not None:
        observer("topology", topology)
    return topology, {"topology": seconds}

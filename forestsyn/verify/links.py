"""The links of a topology, looked up by their ends, many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forestsyn.ir.topology import Topology

_Array = npt.NDArray[Any]


def link_ends(topology: Topology) -> tuple[_Array, _Array]:
    """int64[links] each: the tail and the head of every link."""
    count = len(topology.links)
    tails = np.fromiter((link.tail for link in topology.links), dtype=np.int64, count=count)
    return tails, np.fromiter((link.head for link in topology.links), dtype=np.int64, count=count)


def find_links(topology: Topology, tails: _Array, heads: _Array) -> npt.NDArray[np.int64]:
    """The number of the link from each of `tails` to the same one of `heads`, −1 where there is none."""
    count = len(topology.vertices)
    known_tails, known_heads = link_ends(topology)
    known, wanted = known_tails * count + known_heads, tails * count + heads
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: npt.NDArray[np.int64] = np.where(known[position] == wanted, position, -1)
    return found

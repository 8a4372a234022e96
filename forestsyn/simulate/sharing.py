"""Max–min fair sharing of links among flows.

Problem. Flows pass fixed paths of links with capacities, each flow with a limit of its own. Rates are max–min fair
when no flow can get more without another that has no more getting less.

Method. Water-filling, on whole arrays. Each round, a link offers every unsettled flow an equal share of what it has
left, and a flow's level is the least offer on its path, or its own limit. Offers never fall from round to round, as
no flow takes more than it is offered. So a flow whose limit is its level is settled, and so are all flows of a link
if its offer is the level of each: nothing that happens elsewhere can change it. Unless a limit settles first, the
link with the least offer is such a link, so each round settles something; links far apart settle in the same round.

Complexity. O(flows · path length) a round; rounds are as many as bottlenecks that hang on each other, mostly 1 to 4.
Rates depend on the set of flows alone and programs repeat themselves, so recent answers are kept.

References. Bertsekas and Gallager, Data Networks, section 6.5.2; Ros-Giralt et al., On the bottleneck structure of
congestion-controlled networks (SIGMETRICS 2020).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_KEPT = 1024
#: Levels this close are the same: they differ by rounding only.
_SLACK = 1 + 1e-10

_Floats = npt.NDArray[np.float64]


class Sharing:
    """paths: int64[P, W], links of each path, padded with L. capacity: float64[L]."""

    def __init__(self, paths: npt.NDArray[np.int64], capacity: _Floats) -> None:
        self._paths = paths
        self._capacity = np.append(capacity, np.inf)
        self._kept: dict[bytes, tuple[_Floats, list[float]]] = {}

    def rates(self, flows: npt.NDArray[np.int64], limits: _Floats) -> tuple[_Floats, list[float]]:
        """The rate of each flow and what every link, the padding included, has left; in the unit of `capacity`.

        flows: int64[F], the path of each flow. limits: float64[F], its own limit.
        """
        key = flows.tobytes() + limits.tobytes()
        answer = self._kept.get(key)
        if answer is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            answer = self._kept[key] = self._fill(self._paths[flows], limits)
        return answer

    def _fill(self, paths: npt.NDArray[np.int64], limits: _Floats) -> tuple[_Floats, list[float]]:
        rates = np.zeros(len(paths))
        left = self._capacity.copy()
        links, width = len(left), paths.shape[1]
        open_flows: npt.NDArray[Any] = np.arange(len(paths))
        while len(open_flows):
            ends = paths.ravel()
            count = np.bincount(ends, minlength=links)
            offer = left / np.maximum(count, 1)
            level = np.minimum(offer[paths].min(axis=1), limits)
            stands = offer[paths] <= (level * _SLACK)[:, None]
            settled_links = np.bincount(ends, weights=stands.ravel(), minlength=links) == count
            settled = (limits <= level) | (stands & settled_links[paths]).any(axis=1)
            taken = level[settled]
            rates[open_flows[settled]] = taken
            left -= np.bincount(paths[settled].ravel(), weights=np.repeat(taken, width), minlength=links)
            np.maximum(left, 0.0, out=left)
            left[-1] = np.inf
            rest = ~settled
            open_flows, paths, limits = open_flows[rest], paths[rest], limits[rest]
        return rates, left.tolist()

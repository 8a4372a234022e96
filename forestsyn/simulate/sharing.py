"""Max–min fair sharing of links among flows.

Problem. Flows pass fixed paths of links with capacities, each flow with a limit of its own. Rates are max–min fair
when no flow can get more without another that has no more getting less.

Method. Water-filling: raise all rates together; a flow stops at its own limit or when a link of its path is full.
Flows with the lowest such level are frozen, their rates taken off their links, and the rest go on.

Complexity. O(flows · path length) for each distinct level. Rates depend on the set of flows alone and programs repeat
themselves, so recent answers are kept.

References. Bertsekas and Gallager, Data Networks, section 6.5.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_KEPT = 4096
_SLACK = 1 + 1e-9


class Sharing:
    """paths: int64[F, P], links of each flow, padded with L. capacity: float64[L]. limit: float64[F]."""

    def __init__(
        self, paths: npt.NDArray[np.int64], capacity: npt.NDArray[np.float64], limit: npt.NDArray[np.float64]
    ) -> None:
        self.paths = paths
        self.capacity = np.append(capacity, np.inf)
        self.limit = limit
        self._kept: dict[bytes, npt.NDArray[np.float64]] = {}

    def rates(self, flows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The rates of the active flows, in the unit of `capacity`."""
        key = flows.tobytes()
        rates = self._kept.get(key)
        if rates is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            rates = self._kept[key] = self._fill(flows)
        return rates

    def _fill(self, flows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        rates = np.zeros(len(flows))
        residual = self.capacity.copy()
        position = np.arange(len(flows))
        paths, limit = self.paths[flows], self.limit[flows]
        none = len(residual) - 1
        while len(position):
            count = np.bincount(paths.ravel(), minlength=len(residual))
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(count > 0, residual / count, np.inf)
            share[none] = np.inf
            level = np.minimum(share[paths].min(axis=1), limit)
            frozen = level <= level.min() * _SLACK
            rates[position[frozen]] = level[frozen]
            taken = np.repeat(level[frozen], paths.shape[1])
            residual -= np.bincount(paths[frozen].ravel(), weights=taken, minlength=len(residual))
            residual[none] = np.inf
            np.maximum(residual, 0, out=residual)
            position, paths, limit = position[~frozen], paths[~frozen], limit[~frozen]
        return rates

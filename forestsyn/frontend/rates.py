"""The one table of link rates: what `nvlink:`, `xgmi:`, `c2c:`, `pcie:`, `socket:` and `nic:` mean in GB/s.

Three columns, never mixed in one topology: `spec` is the payload rate of the data sheet, `nccl` what the topology
search of NCCL and RCCL assumes (about 80 % of the wire), `measured` what a benchmark reached.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

import msgspec

from forestsyn.errors import InputError


class Rates(StrEnum):
    """A column of the table."""

    SPEC = "spec"
    NCCL = "nccl"
    MEASURED = "measured"


class Rate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """GB/s in one direction of one `per` of the link `kind` in the generation or part `name`; None: not known."""

    kind: str
    name: str
    per: str
    spec: Fraction | None
    nccl: Fraction | None = None
    measured: Fraction | None = None
    source: str

    def column(self, rates: Rates) -> Fraction | None:
        """The rate in the column `rates`."""
        return {Rates.SPEC: self.spec, Rates.NCCL: self.nccl, Rates.MEASURED: self.measured}[rates]


_ML_ENGINEERING = "stas00/ml-engineering, network"
_NCCL = "NCCL v2.30 topo.h"
_RCCL = "RCCL topo.h"


def rate_table() -> tuple[Rate, ...]:
    """Every known rate, in the order of the documentation."""
    return (*_nvlink(), *_xgmi(), *_c2c(), *_pcie(), *_socket(), *_nic())


def find_rate(kind: str, name: str, rates: Rates) -> Fraction:
    """GB/s of one link of `kind` and `name` in the column `rates`. Raises InputError without a place."""
    rows = {rate.name: rate for rate in rate_table() if rate.kind == kind}
    if name not in rows:
        raise InputError(
            f"no {kind} rate is known for '{name}'", hint=f"known: {', '.join(rows)}; or give the rate as bw:"
        )
    value = rows[name].column(rates)
    if value is None:
        raise InputError(
            f"no {rates} rate is known for {kind} '{name}'", hint="choose another column of rates, or give bw:"
        )
    return value


def _nvlink() -> tuple[Rate, ...]:
    rows = (
        ("gen1", "20", "18", None, _ML_ENGINEERING),
        ("gen2", "25", "20", None, _ML_ENGINEERING),
        ("gen3", "25", "20", None, _ML_ENGINEERING),
        # 8 x H200: 361 GB/s all-gather bus bandwidth over 18 links (ml-engineering)
        ("gen4", "25", "20.6", Fraction(361, 18), "NVIDIA/nccl-tests#256; measured on 8 H200"),
        ("gen5", "50", "40.1", None, _ML_ENGINEERING),
        ("gen6", "50", None, None, "announced for Rubin"),
        ("p100", "20", "18", None, _ML_ENGINEERING),
        ("v100", "25", "20", None, _ML_ENGINEERING),
        ("2080ti", "25", "20", None, "from memory"),
        ("a100", "25", "20", None, _ML_ENGINEERING),
        ("a800", "25", "20", None, "from memory"),
        ("3090", "14.0625", "12", None, "nvidia-smi nvlink -s: 14.062 GB/s"),
        ("a6000", "14.0625", "12", None, "as 3090"),
        ("a40", "14.0625", "12", None, "as 3090"),
        ("h100", "25", "20.6", Fraction(361, 18), "as gen4"),
        ("h200", "25", "20.6", Fraction(361, 18), "as gen4"),
        ("h800", "25", "20.6", None, "NVIDIA/nccl#1411"),
        ("gh200", "25", "20.6", None, _ML_ENGINEERING),
        ("b200", "50", "40.1", None, _ML_ENGINEERING),
        ("gb200", "50", "40.1", None, _ML_ENGINEERING),
        ("b300", "50", "40.1", None, _ML_ENGINEERING),
    )
    return tuple(_rate("nvlink", "link", row) for row in rows)


def _xgmi() -> tuple[Rate, ...]:
    # 8 x MI300X: 312.9 GB/s all-gather bus bandwidth over 7 links (ml-engineering)
    measured = Fraction("312.9") / 7
    rows = (
        ("mi50", "46", "24", None, "from memory; " + _RCCL),
        ("mi100", "46", "24", None, "ROCm documentation, MI100"),
        ("mi210", "50", "36", None, "from memory; " + _RCCL),
        ("mi250", "50", "36", None, "ROCm documentation, MI250; " + _RCCL),
        ("mi250x", "50", "36", None, "ROCm documentation, MI250; OLCF and LUMI guides"),
        ("mi300x", "64", "48", measured, "amd-smi xgmi: 512 Gb/s; measured on 8 MI300X"),
        ("mi325x", "64", "48", None, "as mi300x"),
        ("mi350x", "76.5", None, None, _ML_ENGINEERING),
        ("mi355x", "76.5", None, None, _ML_ENGINEERING),
    )
    return tuple(_rate("xgmi", "link", row) for row in rows)


def _c2c() -> tuple[Rate, ...]:
    rows = (
        ("gh200", "450", None, None, _ML_ENGINEERING),
        ("gb200", "450", None, None, _ML_ENGINEERING),
        ("gb300", "450", "223.56", None, _ML_ENGINEERING + "; NCCL reads 5 x 44.712"),
        ("gb10", None, "345", None, "NCCL reads 8 x 43.125"),
    )
    return tuple(_rate("c2c", "GPU", row) for row in rows)


def _pcie() -> tuple[Rate, ...]:
    source = f"PCI-SIG payload rate; {_NCCL}"
    of_16_lanes = (
        ("gen1", "4", "3", None, source),
        ("gen2", "8", "6", None, source),
        ("gen3", "15.75", "12", None, source),
        ("gen4", "31.5", "24", None, source),
        ("gen5", "63", "48", Fraction("55.4"), source + "; measured host to device on H200"),
        ("gen6", "121", "96", None, source),
    )
    return tuple(_rate("pcie", "lane", row, divisor=16) for row in of_16_lanes)


def _socket() -> tuple[Rate, ...]:
    rows = (
        ("qpi-broadwell", "19.2", "6", None, "9.6 GT/s, one link; " + _NCCL),
        ("upi-skylake", "20.8", "10", None, "10.4 GT/s, one link; " + _NCCL),
        ("upi-icelake", "22.4", "10", None, "11.2 GT/s, one link; " + _NCCL),
        ("upi-sapphire-rapids", "32", "22", None, "16 GT/s, one link; " + _NCCL),
        ("upi-emerald-rapids", "40", "40", None, "20 GT/s, one link; " + _NCCL),
        ("xgmi-rome", "32", "16", None, "16 GT/s x16, one link; " + _NCCL),
        ("xgmi-milan", "36", "16", None, "18 GT/s x16, one link; " + _NCCL),
        ("xgmi-genoa", "64", "16", None, "32 GT/s x16, one link; " + _NCCL),
        ("power9", "64", "32", None, "X-bus; " + _NCCL),
        ("arm", None, "6", None, _NCCL),
    )
    return tuple(_rate("socket", "link", row) for row in rows)


def _nic() -> tuple[Rate, ...]:
    rows = tuple(
        (
            f"{speed}Gb/s",
            str(Fraction(speed, 8)),
            str(Fraction(speed, 8)),
            None,
            "line rate / 8; any speed is accepted",
        )
        for speed in (10, 25, 40, 100, 200, 400, 800)
    )
    return tuple(_rate("nic", "port", row) for row in rows)


def _rate(
    kind: str, per: str, row: tuple[str, str | None, str | None, Fraction | None, str], divisor: int = 1
) -> Rate:
    name, spec, nccl, measured, source = row
    return Rate(
        kind=kind,
        name=name,
        per=per,
        spec=None if spec is None else Fraction(spec) / divisor,
        nccl=None if nccl is None else Fraction(nccl) / divisor,
        measured=None if measured is None else measured / divisor,
        source=source,
    )

"""From the keys of a link entry (`bw`, `nvlink` + `gen`, `pcie`, ...) to its exact bandwidth."""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.builder import Speed
from forestsyn.frontend.expression import Variables, evaluate_count
from forestsyn.frontend.quantity import parse_bandwidth, parse_latency
from forestsyn.frontend.rates import Rates, find_rate
from forestsyn.frontend.schema import LinkRate, Whole

_FORMS = ("bw", "nvlink", "xgmi", "c2c", "pcie", "socket", "nic")
_MAXIMUM_COUNT = 100_000
_PCIE = re.compile(r"(gen[1-6]) ?x(1|2|4|8|16|32)")


class SpeedReader(msgspec.Struct, frozen=True, kw_only=True):
    """How numbers are read in one file: plain ones in `unit`, counted links in the column `rates`."""

    unit: str
    rates: Rates

    def read(self, rate: LinkRate, variables: Variables) -> Speed:
        """The speed of one link entry. Raises InputError without a place."""
        times = evaluate_count(rate.times, variables, minimum=1, maximum=_MAXIMUM_COUNT, what="'times'")
        return Speed(self._bandwidth(rate, variables) * times, self.latency(rate))

    @staticmethod
    def latency(rate: LinkRate) -> Fraction | None:
        """The latency that is stated, in µs."""
        return None if rate.latency is None else parse_latency(rate.latency)

    @staticmethod
    def gives_bandwidth(rate: LinkRate) -> bool:
        """Whether any form of bandwidth is stated."""
        return any(getattr(rate, form) is not None for form in _FORMS)

    def _bandwidth(self, rate: LinkRate, variables: Variables) -> Fraction:
        given = [form for form in _FORMS if getattr(rate, form) is not None]
        if len(given) != 1:
            raise InputError(
                f"a link has {' and '.join(given) if given else 'no bandwidth'}, expected one of {', '.join(_FORMS)}",
                hint="write for example bw: 25, or nvlink: 12 with gen: 3, or nic: 200Gb/s",
            )
        form = given[0]
        if form not in ("nvlink", "xgmi") and (rate.gen is not None or rate.part is not None):
            raise InputError(f"'gen' and 'part' go with nvlink or xgmi, not with {form}")
        if rate.bw is not None:
            return parse_bandwidth(rate.bw, self.unit)
        if rate.nic is not None:
            return self._nic(rate.nic)
        if rate.pcie is not None:
            return self._pcie(rate.pcie)
        if rate.socket is not None:
            return find_rate("socket", rate.socket, self.rates)
        if rate.c2c is not None:
            return find_rate("c2c", rate.c2c, self.rates)
        return self._counted(form, rate, variables)

    def _counted(self, form: str, rate: LinkRate, variables: Variables) -> Fraction:
        count = evaluate_count(getattr(rate, form), variables, minimum=1, maximum=_MAXIMUM_COUNT, what=f"'{form}'")
        if rate.gen is not None and rate.part is not None:
            raise InputError("a link has both 'gen' and 'part', expected one of them")
        if rate.part is not None:
            return count * find_rate(form, str(rate.part).lower(), self.rates)
        if rate.gen is not None and form == "nvlink":
            return count * find_rate(form, f"gen{str(rate.gen).removeprefix('gen')}", self.rates)
        missing = "gen (as gen: 4) or part (as part: h100)" if form == "nvlink" else "part (as part: mi300x)"
        raise InputError(f"the rate of one {form} link is not known without {missing}")

    def _nic(self, nic: Whole) -> Fraction:
        if self.rates is Rates.MEASURED:
            raise InputError("no measured rate is known for nic", hint="choose another column of rates, or give bw:")
        if isinstance(nic, int):
            raise InputError(f"'nic: {nic}' has no unit", hint=f"write nic: {nic}Gb/s")
        return parse_bandwidth(nic, "Gb/s")

    def _pcie(self, pcie: str) -> Fraction:
        match = _PCIE.fullmatch(pcie)
        if match is None:
            raise InputError(f"'{pcie[:40]}' is no PCIe link", hint="write for example pcie: gen4x16")
        return int(match[2]) * find_rate("pcie", match[1], self.rates)

"""The user's options as parts of a native document, and the questions to ask when they are not given."""

from __future__ import annotations

import re
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.kinds import Options, Question
from forestsyn.frontend.quantity import parse_bandwidth
from forestsyn.frontend.rates import Rates, rate_table

_PCIE = re.compile(r"(?:pcie)?[ -]?(?:gen)?[ -]?([1-6])(?:\.0)?(?:[ -]?x?(1|2|4|8|16|32))?", re.IGNORECASE)
_NIC = re.compile(r"([0-9]+(?:\.[0-9]+)?)[ ]?(?:G|Gb|Gbps|Gb/s|Gbit/s)?", re.IGNORECASE)

PCIE_CHOICES = ("gen3x16", "gen4x16", "gen4x8", "gen5x16", "gen6x16")
NIC_CHOICES = ("100Gb/s", "200Gb/s", "400Gb/s", "800Gb/s")


def pcie_answer(options: Options) -> dict[str, Any] | None:
    """`--pcie` as the rate of a link entry, or None. Raises InputError."""
    if options.pcie is None:
        return None
    match = _PCIE.fullmatch(options.pcie.strip())
    if match is None:
        raise InputError(f"'{options.pcie[:40]}' is no PCIe link", where="--pcie", hint="write for example gen4x16")
    return {"pcie": f"gen{match[1]}x{match[2] or 16}"}


def nic_answer(options: Options) -> dict[str, Any] | None:
    """`--nic` as the rate of a link entry, or None. Raises InputError."""
    if options.nic is None:
        return None
    match = _NIC.fullmatch(options.nic.strip())
    text = f"{match[1]}Gb/s" if match is not None else options.nic.strip()
    try:
        parse_bandwidth(text, "Gb/s")
    except InputError as error:
        raise InputError(error.message, where="--nic", hint="write for example 200Gb/s") from None
    return {"nic": text}


def socket_answer(options: Options) -> dict[str, Any] | None:
    """`--socket` as the rate of a link entry, or None. Raises InputError."""
    if options.socket is None:
        return None
    text = options.socket.strip()
    if text in socket_choices(options):
        return {"socket": text}
    try:
        parse_bandwidth(text, "GB/s")
    except InputError:
        raise InputError(
            f"'{text[:40]}' is no link between sockets",
            where="--socket",
            hint=f"known: {', '.join(socket_choices(options))}; or a bandwidth such as 16GB/s",
        ) from None
    return {"bw": text}


def rates_answer(options: Options) -> str:
    """The column of rates that the document names. Raises InputError."""
    if options.rates is None:
        return Rates.SPEC.value
    if options.rates not in tuple(Rates):
        raise InputError(f"'{options.rates[:40]}' is no column of rates", where="--rates", hint=", ".join(Rates))
    return options.rates


def pcie_question() -> Question:
    """What to ask where PCIe joins GPUs."""
    return Question("--pcie", "which PCIe generation and width the devices have", PCIE_CHOICES)


def nic_question() -> Question:
    """What to ask where the speed of the NICs matters."""
    return Question("--nic", "how fast the NICs are", NIC_CHOICES)


def socket_question(options: Options) -> Question:
    """What to ask where data crosses from one CPU to another."""
    choices = (*socket_choices(options), "or a bandwidth such as 16GB/s")
    return Question("--socket", "what links the CPU sockets (or NUMA nodes)", choices)


def socket_choices(options: Options) -> tuple[str, ...]:
    """The names of socket links that have a rate in the chosen column."""
    column = Rates(rates_answer(options))
    return tuple(rate.name for rate in rate_table() if rate.kind == "socket" and rate.column(column) is not None)

"""What every reader of a foreign format takes and gives.

A reader turns text into a native topology document: plain dicts, lists, texts and whole numbers, as
`forestsyn.frontend.schema` decodes them from YAML. What it had to assume stands beside the value as a `Guess`; what
it must not assume is a `Question`, which names the option that answers it. A default is never silent.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from forestsyn.errors import InputError

#: Keys and list positions that lead to a value of the document: `("links", 0, "pcie")`.
DocumentPath = tuple[str | int, ...]

_CHOICES_SHOWN = 24


class Guess(msgspec.Struct, frozen=True):
    """A value that the file does not state: where it stands in the document, and why it is what it is."""

    path: DocumentPath
    text: str


class Question(msgspec.Struct, frozen=True):
    """Something that only the user knows: the option that answers it (`--gpu`), what is asked, the valid answers."""

    option: str
    text: str
    choices: tuple[str, ...] = ()


class Helper(msgspec.Struct, frozen=True):
    """Another text about the same machine, such as the output of `nvidia-smi nvlink -s`."""

    source: str
    text: str


class HostTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of host, read from a file of its own, for readers of fabrics.

    pattern: the hosts it stands for (`*`, `?`). template: as under `templates` of a native file. ports: its devices
    that can join a fabric, in order: the NICs, or the GPUs where it has no NIC. guesses: paths inside `template`.
    """

    pattern: str
    name: str
    template: dict[str, Any]
    ports: tuple[str, ...]
    guesses: tuple[Guess, ...] = ()
    notes: tuple[str, ...] = ()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The answers that the user gave. None: not given; a reader then asks (`Found.missing`) or guesses aloud."""

    #: Model of the GPUs: `a100`, a name of the rate table; or several, in the order of the GPUs.
    gpu: str | None = None
    #: `gen4x16`: the PCIe link of each GPU and NIC.
    pcie: str | None = None
    #: `200Gb/s`: the speed of each NIC.
    nic: str | None = None
    #: Whether NVLinks lead to a switch (True) or from GPU to GPU (False).
    nvswitch: bool | None = None
    #: Links of each xGMI pair.
    xgmi: int | None = None
    #: `upi-icelake`, a name of the rate table, or a bandwidth: the link between two CPU sockets.
    socket: str | None = None
    #: `spec` (default) or `nccl`: the column of the rate table that the written document names.
    rates: str | None = None
    #: A machine of the catalog that the file describes, for files that hold too little.
    machine: str | None = None
    #: Storage and management NICs are left out unless this is True.
    all_nics: bool = False
    #: Speed of a link of the fabric, for files that name switches and no speeds.
    link: str | None = None
    #: GPUs and NICs of each host, for files that describe a fabric only.
    gpus_per_host: int | None = None
    nics_per_host: int | None = None
    #: Attributes of a generic graph: the one that holds the bandwidth and the one that marks GPUs.
    capacity_attribute: str | None = None
    gpu_attribute: str | None = None
    #: Unit of plain numbers in a generic graph: `Gb/s`.
    unit: str | None = None
    #: How many hosts, for files that describe one and a way to join them.
    hosts: int | None = None
    #: Down over up bandwidth of a switch, for files that name switches only; one number, or one a level: `1,2`.
    oversubscription: str | None = None
    #: The kinds of host on the fabric.
    templates: tuple[HostTemplate, ...] = ()
    #: Other texts about the same machine.
    helpers: tuple[Helper, ...] = ()


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader understood. `document` is complete and valid exactly when `missing` is empty."""

    kind: str
    document: dict[str, Any]
    guesses: tuple[Guess, ...] = ()
    missing: tuple[Question, ...] = ()
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """One kind of file. `helps` names the kind that reads this one beside its own (`Options.helpers`), or is None."""

    @property
    def kind(self) -> str:
        """A short name, as `--kind` takes it: `nvidia-smi-topo`."""

    @property
    def title(self) -> str:
        """For people: `nvidia-smi topo -m`."""

    @property
    def helps(self) -> str | None:
        """The kind of reader that this text accompanies."""

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 (no) to 100, that a file of this name whose text begins with `head` is of this kind."""

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """Read `text`; `source` names it in messages. Raises InputError when it cannot be trusted."""


def require_answers(found: Found, *, source: str) -> None:
    """Raise InputError with everything that must be asked, if anything must. `where` is `source`."""
    if not found.missing:
        return
    asked = "; ".join(f"{question.text} ({question.option})" for question in found.missing)
    hints = []
    for question in found.missing:
        shown = ", ".join(question.choices[:_CHOICES_SHOWN])
        hints.append(f"{question.option}: {shown}" if shown else f"give {question.option}")
    raise InputError(f"this {found.kind} file does not say {asked}", where=source, hint="; ".join(hints))

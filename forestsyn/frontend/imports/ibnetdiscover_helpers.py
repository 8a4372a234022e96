"""Texts that stand beside the output of ibnetdiscover: adapters of hosts by their GUID, and lists of hosts."""

from __future__ import annotations

import re

from forestsyn.errors import InputError
from forestsyn.frontend.imports.ibnetdiscover import IbNetDiscover
from forestsyn.frontend.imports.kinds import Found, Options


class IbStat:
    """Host names and the GUIDs of their adapters: helps ibnetdiscover where adapters bear other names."""

    kind = "ibstat"
    title = "ibstat, collected from all hosts"
    helps: str | None = IbNetDiscover.kind

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 80 if re.search(r"^VM_hostname \S+\n[0-9a-fA-F]{16}$", head, re.MULTILINE) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """Refuse: it names no cable."""
        raise InputError(
            "this names hosts and their adapters, not how they are cabled",
            where=source,
            hint="give it beside the output of ibnetdiscover: --beside",
        )


class HostList:
    """A plain list of host names."""

    kind = "host-list"
    title = "a list of hosts"
    helps: str | None = IbNetDiscover.kind

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100: only by the name of the file, for any word could be a host."""
        lines = [line.strip() for line in head.splitlines() if line.strip()]
        plain = bool(lines) and all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", line) for line in lines)
        return 60 if plain and "host" in name.lower() else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """Refuse: it names no cable."""
        raise InputError(
            "this lists host names, not what they hold nor how they are cabled",
            where=source,
            hint="give the output of ibnetdiscover, or a Slurm topology.conf",
        )

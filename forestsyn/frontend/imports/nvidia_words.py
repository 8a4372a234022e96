"""What looks like a description of GPU boxes and is no output of a tool: refused, with what to give instead.

Two kinds are common in reports of trouble: sentences ("4x A100, one NIC"), and the tree that NCCL prints into its log
with NCCL_DEBUG_SUBSYS=GRAPH, which is rounded and often cut. Links in it that no GPU should hang on are named.
"""

from __future__ import annotations

import re

from forestsyn.errors import InputError
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.text import host_lines

_LOG = re.compile(r"=== System : maxBw")
_LOG_LINK = re.compile(r"\+ PCI\[([0-9]{1,5}\.[0-9]{1,2})\] - (\S{1,60})")
_WORDS = re.compile(r"\bGPUs?\b|\bGPU ?[0-9]|\b(?:[AHBVP][12]00|H800|MI[0-9]{3}X?|RTX)\b")
#: GB/s; PCIe gen1 x4 has less.
_NARROW = 1.0
_HINT = "give the output of 'nvidia-smi topo -m', 'amd-smi topology' or an NCCL topology XML, or write a native file"


class WordsOnly:
    """Sentences about GPUs, and NCCL's log of its topology."""

    kind = "words"
    title = "sentences or an NCCL log"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100: below all other readers for sentences."""
        if _LOG.search(head):
            return 60
        return 2 if _WORDS.search(head) and not head.lstrip().startswith(("<", "{", "[")) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """Always refuses."""
        lines = host_lines(text, source=source)
        if _LOG.search(text) is None:
            raise InputError(
                "this tells of GPUs in words; a matrix, a list of links or a dump is missing",
                where=source,
                hint=_HINT,
            )
        links = [match for line in lines if (match := _LOG_LINK.search(line)) is not None]
        narrow = [f"{match[2]} at {match[1]} GB/s" for match in links if float(match[1]) < _NARROW]
        told = f"; in it PCIe links are suspiciously narrow: {', '.join(narrow[:8])}" if narrow else ""
        raise InputError(
            f"this is NCCL's log of a topology, rounded and perhaps cut; the topology itself is missing{told}",
            where=source,
            hint="dump the topology: NCCL_TOPO_DUMP_FILE=system.xml",
        )

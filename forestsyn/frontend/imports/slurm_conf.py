"""Slurm's topology.conf: trees (`SwitchName=`) and blocks (`BlockName=`)."""

from __future__ import annotations

import re

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_tree import Tree, compose_tree
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.slurm_names import expand_hostlist
from forestsyn.frontend.imports.slurm_tree import Block, Switch, block_tree, switch_tree
from forestsyn.frontend.imports.text import split_lines

_START = re.compile(r"^\s*(SwitchName|BlockName)\s*=", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r'([A-Za-z]+)\s*=\s*("[^"]*"|\S+)')
_KEYS = {
    "switchname": ("switches", "nodes", "linkspeed"),
    "blockname": ("nodes",),
    "blocksizes": (),
}


class SlurmConf:
    """The reader."""

    kind = "slurm-topology"
    title = "Slurm topology.conf"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if _START.search(head) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The tree with its hosts. Raises InputError with the line."""
        return compose_tree(read_conf(text, source=source), kind=self.kind, source=source, options=options)


def read_conf(text: str, *, source: str) -> Tree:
    """The tree that the file describes; blocks become switches of their own. Raises InputError."""
    switches: list[Switch] = []
    blocks: list[Block] = []
    notes: list[str] = []
    for number, line in _logical_lines(split_lines(text, source=source)):
        where = f"{source}:{number}"
        pairs = _pairs(line, where)
        first, name = next(iter(pairs.items()))
        if first == "switchname":
            switches.append(
                Switch(
                    name=name,
                    switches=expand_hostlist(pairs.get("switches", ""), where=where),
                    nodes=expand_hostlist(pairs.get("nodes", ""), where=where),
                    where=where,
                )
            )
            if "linkspeed" in pairs:
                notes.append("LinkSpeed is left aside, as Slurm does: its unit is not defined")
        elif first == "blockname":
            nodes = expand_hostlist(pairs.get("nodes", ""), where=where)
            blocks.append(Block(name=name, nodes=nodes, where=where))
    if switches and blocks:
        raise InputError("the file has switches and blocks, expected one of them", where=source)
    tree = block_tree(blocks, source=source) if blocks else switch_tree(switches, source=source)
    tree.notes.extend(dict.fromkeys(notes))
    return tree


def _logical_lines(lines: list[str]) -> list[tuple[int, str]]:
    """Lines without comments, with continued ones joined, each with its first number."""
    found: list[tuple[int, str]] = []
    pending, start = "", 0
    for number, line in enumerate(lines, start=1):
        plain = line.partition("#")[0].strip()
        start = start or number
        if plain.endswith("\\"):
            pending += plain[:-1] + " "
            continue
        if pending + plain:
            found.append((start, pending + plain))
        pending, start = "", 0
    return found if not pending else [*found, (start, pending)]


def _pairs(line: str, where: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for match in _WORD.finditer(line):
        key = match[1].lower()
        if key in pairs:
            raise InputError(f"'{match[1]}' is given twice", where=where)
        pairs[key] = match[2].strip('"')
    rest = _WORD.sub("", line).strip()
    if rest or not pairs:
        raise InputError(
            f"cannot read '{(rest or line)[:60]}'", where=where, hint="expected SwitchName=... Nodes=..."
        )
    first = next(iter(pairs))
    if first not in _KEYS:
        raise InputError(
            f"the line begins with '{first[:40]}', expected SwitchName, BlockName or BlockSizes", where=where
        )
    unknown = [key for key in pairs if key != first and key not in _KEYS[first]]
    if unknown:
        raise InputError(f"'{unknown[0][:40]}' does not go with {first}", where=where)
    return pairs

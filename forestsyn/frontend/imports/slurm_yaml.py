"""Slurm's topology.yaml: a list of named topologies, each a tree, blocks or flat."""

from __future__ import annotations

import re
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.document import Document, parse_document
from forestsyn.frontend.imports.compose_tree import Tree, compose_tree
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.slurm_names import expand_hostlist
from forestsyn.frontend.imports.slurm_tree import Block, Switch, block_tree, switch_tree

_START = re.compile(r"^\s*-\s+topology\s*:", re.MULTILINE)
_READ = ("tree", "block")
_KNOWN = ("tree", "block", "flat", "ring", "torus3d")


class SlurmYaml:
    """The reader."""

    kind = "slurm-topology-yaml"
    title = "Slurm topology.yaml"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if _START.search(head) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The default topology (else the first that is a tree or blocks). Raises InputError with the line."""
        tree = read_yaml(text, source=source)
        return compose_tree(tree, kind=self.kind, source=source, options=options)


def read_yaml(text: str, *, source: str) -> Tree:
    """The tree of the topology that counts. Raises InputError."""
    document = parse_document(text, source=source)
    entries = document.value
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("expected a list of topologies, each with the key 'topology'", where=source)
    index = _choose(document, entries)
    entry = entries[index]
    where = document.where(index)
    if isinstance(entry.get("block"), dict):
        tree = block_tree(_blocks(document, index), source=where)
    elif isinstance(entry.get("tree"), dict):
        tree = switch_tree(_switches(document, index), source=where)
    else:
        found = [key for key in entry if key in _KNOWN]
        raise InputError(
            f"the topology '{str(entry.get('topology'))[:60]}' is {found[0] if found else 'of no known kind'}, "
            "which tells no switches",
            where=where,
            hint="read are: tree, block",
        )
    if len(entries) > 1:
        tree.notes.append(f"of {len(entries)} topologies '{str(entry.get('topology'))[:60]}' is read")
    return tree


def _choose(document: Document, entries: list[dict[str, Any]]) -> int:
    for index, entry in enumerate(entries):
        if "topology" not in entry:
            raise InputError("the key 'topology' is missing", where=document.where(index))
    for index, entry in enumerate(entries):
        if entry.get("cluster_default") is True:
            return index
    for index, entry in enumerate(entries):
        if any(key in entry for key in _READ):
            return index
    return 0


def _switches(document: Document, index: int) -> list[Switch]:
    listed = _list(document, index, "tree", "switches")
    switches = []
    for number, entry in enumerate(listed):
        where = document.where(index, "tree", "switches", number)
        switches.append(
            Switch(
                name=_text(entry, "switch", where),
                switches=expand_hostlist(_text(entry, "children", where, ""), where=where),
                nodes=expand_hostlist(_text(entry, "nodes", where, ""), where=where),
                where=where,
            )
        )
    return switches


def _blocks(document: Document, index: int) -> list[Block]:
    blocks = []
    for number, entry in enumerate(_list(document, index, "block", "blocks")):
        where = document.where(index, "block", "blocks", number)
        nodes = expand_hostlist(_text(entry, "nodes", where, ""), where=where)
        blocks.append(Block(name=_text(entry, "block", where), nodes=nodes, where=where))
    return blocks


def _list(document: Document, index: int, kind: str, key: str) -> list[Any]:
    value = document.value[index][kind].get(key)
    if not isinstance(value, list):
        raise InputError(f"'{kind}' needs a list '{key}'", where=document.where(index, kind, key))
    return value


def _text(entry: Any, key: str, where: str, default: str | None = None) -> str:
    if not isinstance(entry, dict):
        raise InputError("expected a mapping", where=where)
    value = entry.get(key, default)
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        value = ",".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"the key '{key}' is missing or no text", where=where)
    return str(value)

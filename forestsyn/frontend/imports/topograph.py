"""Cluster models of topograph (YAML), and the labels of Kubernetes nodes: trees of switches over hosts."""

from __future__ import annotations

import json
import re
from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.document import parse_document
from forestsyn.frontend.imports.compose_tree import Tree, compose_tree
from forestsyn.frontend.imports.kinds import Found, Options
from forestsyn.frontend.imports.slurm_names import expand_hostlist
from forestsyn.frontend.imports.slurm_tree import Switch, switch_tree

_MODEL = re.compile(r"^switches\s*:", re.MULTILINE)
_MODEL_MORE = re.compile(r"^(?:blocks|nodes|capacity_blocks)\s*:", re.MULTILINE)
#: Labels of the levels of a network from the nearest switch up, newest spelling first.
_LEVELS = (
    tuple(f"fabric.topograph.run/tier-{level}" for level in range(1, 9)),
    *(
        tuple(f"network.topology.nvidia.com/{name}" for name in names)
        for names in (("leaf", "spine", "core"), ("block", "spine", "datacenter"))
    ),
    tuple(f"topology.kubernetes.io/network-level-{level}" for level in range(1, 9)),
)
_DOMAINS = ("accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator", "nvidia.com/gpu.clique")


class TopographModel:
    """A model: `switches`, and `blocks` (older: `capacity_blocks`, `nodes`) of hosts under them."""

    kind = "topograph-model"
    title = "topograph model"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if _MODEL.search(head) is None or re.search(r"^\s*forestsyn\s*:", head, re.MULTILINE):
            return 0
        return 85 if _MODEL_MORE.search(head) else 40 if re.search(r"^\s+(?:switches|nodes)\s*:", head, re.M) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The tree with its hosts. Raises InputError."""
        document = parse_document(text, source=source).value
        if not isinstance(document, dict):
            raise InputError("expected a mapping with 'switches'", where=source)
        tree = switch_tree(_model_switches(document, source), source=source)
        _note_domains(tree, document)
        return compose_tree(tree, kind=self.kind, source=source, options=options)


def _model_switches(document: dict[str, Any], source: str) -> list[Switch]:
    blocks = _named(document.get("blocks", document.get("capacity_blocks")), source)
    below: dict[str, list[str]] = {}
    for block in blocks.values():
        if isinstance(block.get("switch"), str):
            below.setdefault(block["switch"], []).extend(_names(block.get("nodes"), source))
    switches = []
    for name, entry in _named(document.get("switches"), source).items():
        nodes = [*_names(entry.get("nodes"), source), *below.pop(name, [])]
        for block_name in _names(entry.get("blocks", entry.get("capacity_blocks")), source):
            nodes.extend(_names(blocks.get(block_name, {}).get("nodes"), source))
        children = _names(entry.get("switches"), source)
        switches.append(Switch(name=name, switches=children, nodes=nodes, where=source))
    if below:
        raise InputError(f"the switch '{next(iter(below))[:60]}' of a block is not described", where=source)
    return [switch for switch in switches if switch.nodes or switch.switches]


def _named(value: Any, source: str) -> dict[str, dict[str, Any]]:
    """A mapping of mappings, or a list of mappings with a name."""
    if value is None:
        return {}
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        pairs = [(str(item.get("name", item.get("id", number))), item) for number, item in enumerate(value)]
    else:
        raise InputError("expected a mapping, or a list of mappings with names", where=source)
    return {str(name): item if isinstance(item, dict) else {} for name, item in pairs}


def _names(value: Any, source: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, dict):
        return [str(name) for name in value]
    listed = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str | int) and not isinstance(item, bool) for item in listed):
        raise InputError("expected a list of names", where=source)
    return [name for item in listed for name in expand_hostlist(str(item), where=source)]


def _note_domains(tree: Tree, document: dict[str, Any]) -> None:
    if "domain" in json.dumps(document)[:1_000_000] or "nvlink" in json.dumps(document)[:1_000_000]:
        tree.notes.append(_domain_note())


def _domain_note() -> str:
    return "accelerator domains are named; NVLink between hosts is not in the result (gb200-nvl72 is one domain)"


class NodeLabels:
    """Nodes with labels: `kubectl get nodes -o json` or `-o yaml`, or `--show-labels`."""

    kind = "kubernetes-labels"
    title = "kubectl get nodes -o json, or --show-labels"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        labels = any(label in head for level in _LEVELS for label in level) or any(d in head for d in _DOMAINS)
        return 90 if labels and re.search(r"kind\W+(?:Node|List)|LABELS", head) else 60 if labels else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The tree that the labels tell. Raises InputError."""
        nodes = _labelled_nodes(text, source)
        return compose_tree(_label_tree(nodes, source), kind=self.kind, source=source, options=options)


def _labelled_nodes(text: str, source: str) -> dict[str, dict[str, str]]:
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("NAME"):
        return _table(stripped, source)
    if re.search(r"^kind\W+Topology\b", text, re.MULTILINE):
        raise InputError(
            "a Kueue Topology names the labels of levels, not where nodes are",
            where=source,
            hint="give the output of 'kubectl get nodes -o json'",
        )
    value = _load(text, stripped, source)
    items = value.get("items", [value]) if isinstance(value, dict) else value
    nodes: dict[str, dict[str, str]] = {}
    for item in items if isinstance(items, list) else []:
        metadata = item.get("metadata") if isinstance(item, dict) else None
        if isinstance(metadata, dict) and isinstance(metadata.get("labels"), dict):
            labels = {str(key): str(label) for key, label in metadata["labels"].items()}
            nodes[str(metadata.get("name", len(nodes)))] = labels
    return nodes


def _load(text: str, stripped: str, source: str) -> Any:
    if not stripped.startswith(("{", "[")):
        return parse_document(text, source=source).value
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is not JSON: {str(error)[:80]}", where=source) from None


def _table(text: str, source: str) -> dict[str, dict[str, str]]:
    header, *rows = text.splitlines()
    if "LABELS" not in header.split():
        raise InputError("the table has no column LABELS", where=source, hint="run kubectl get nodes --show-labels")
    nodes: dict[str, dict[str, str]] = {}
    for row in rows:
        words = row.split()
        if len(words) > 1:
            pairs = (pair.partition("=") for pair in words[-1].split(","))
            nodes[words[0]] = {key: value for key, _, value in pairs}
    return nodes


def _label_tree(nodes: dict[str, dict[str, str]], source: str) -> Tree:
    """Switches by the labels of the levels; the label that most nodes bear decides which spelling counts."""
    best = max(_LEVELS, key=lambda levels: sum(levels[0] in labels for labels in nodes.values()))
    tree = Tree(parent={}, leaf={}, notes=[], guesses=[])
    without = []
    for node, labels in nodes.items():
        path = [labels[level] for level in best if labels.get(level)]
        if not path:
            without.append(node)
            continue
        tree.leaf[node] = _climb(tree, path, node, source)
    if not tree.leaf:
        raise InputError(
            f"none of {len(nodes)} nodes has a label of the network's levels",
            where=source,
            hint=f"expected labels such as {_LEVELS[0][0]} or {_LEVELS[1][0]}",
        )
    if without:
        tree.notes.append(f"left out {len(without)} nodes without such labels: {', '.join(without[:4])}")
    if any(domain in labels for labels in nodes.values() for domain in _DOMAINS):
        tree.notes.append(_domain_note())
    return tree


def _climb(tree: Tree, path: list[str], node: str, source: str) -> str:
    """Add the switches of `path` from the leaf up; the leaf. One name on two levels is two switches."""
    names = [f"{label}.L{level}" if path.index(label) != level else label for level, label in enumerate(path)]
    for name, above in zip(names, [*names[1:], None], strict=True):
        known = tree.parent.setdefault(name, above)
        if known != above and above is not None:
            if known is not None:
                raise InputError(
                    f"by the labels of '{node[:60]}' the switch '{name[:60]}' is under '{above[:60]}', else under "
                    f"'{known[:60]}'",
                    where=source,
                )
            tree.parent[name] = above
    return names[0]

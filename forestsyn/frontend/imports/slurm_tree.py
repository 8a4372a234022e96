"""Switches and blocks as Slurm lists them, to the tree that they make."""

from __future__ import annotations

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.compose_tree import Tree
from forestsyn.frontend.imports.kinds import Guess


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """A switch and what is right below it."""

    name: str
    switches: list[str]
    nodes: list[str]
    where: str


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A block: hosts that are near to each other."""

    name: str
    nodes: list[str]
    where: str


def switch_tree(switches: list[Switch], *, source: str) -> Tree:
    """The tree. Raises InputError where a switch is missing, twice, or has no place."""
    tree = Tree(parent={}, leaf={}, notes=[], guesses=[])
    for switch in switches:
        if switch.name in tree.parent:
            raise InputError(f"the switch '{switch.name[:60]}' is described twice", where=switch.where)
        if not switch.switches and not switch.nodes:
            raise InputError(f"the switch '{switch.name[:60]}' has neither Switches nor Nodes", where=switch.where)
        tree.parent[switch.name] = None
    twice: list[str] = []
    for switch in switches:
        for child in switch.switches:
            if child not in tree.parent:
                raise InputError(f"the switch '{child[:60]}' is not described", where=switch.where)
            if tree.parent[child] is not None and tree.parent[child] != switch.name:
                raise InputError(
                    f"the switch '{child[:60]}' is under '{tree.parent[child]}' and '{switch.name[:60]}'",
                    where=switch.where,
                    hint="a tree has one way up; give the cables by ibnetdiscover instead",
                )
            tree.parent[child] = switch.name
        _place(tree, switch.nodes, switch.name, twice)
    if not switches:
        raise InputError("no switch is described", where=source)
    _tell_twice(tree, twice)
    return tree


def block_tree(blocks: list[Block], *, source: str) -> Tree:
    """One switch for each block, and one above all of them."""
    tree = Tree(parent={}, leaf={}, notes=[], guesses=[])
    top = "top"
    while any(block.name == top for block in blocks):
        top += "_"
    twice: list[str] = []
    for block in blocks:
        if block.name in tree.parent:
            raise InputError(f"the block '{block.name[:60]}' is described twice", where=block.where)
        if not block.nodes:
            raise InputError(f"the block '{block.name[:60]}' has no Nodes", where=block.where)
        tree.parent[block.name] = top if len(blocks) > 1 else None
        _place(tree, block.nodes, block.name, twice)
    if len(blocks) > 1:
        tree.parent[top] = None
        tree.guesses.append(Guess(("fabric", "switches"), "one switch for each block, and one that joins the blocks"))
        tree.notes.append("blocks tell what is near, not what joins them; one switch above all blocks is supposed")
    if not blocks:
        raise InputError("no block is described", where=source)
    _tell_twice(tree, twice)
    return tree


def _place(tree: Tree, nodes: list[str], switch: str, twice: list[str]) -> None:
    for node in nodes:
        if node in tree.leaf and tree.leaf[node] != switch:
            twice.append(node)
        tree.leaf.setdefault(node, switch)


def _tell_twice(tree: Tree, twice: list[str]) -> None:
    if twice:
        shown = ", ".join(twice[:4]) + (", ..." if len(twice) > 4 else "")
        tree.notes.append(f"{len(twice)} hosts are listed more than once ({shown}); the first place counts")

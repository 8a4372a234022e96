"""Options and arguments that several verbs share, and how their values are written."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import click

from forestsyn.cli.import_options import import_options
from forestsyn.errors import InputError
from forestsyn.ir.collective import Collective

_SHARE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?(?:/\d{1,9})?)(\s*%)?", re.ASCII)
_RANK = re.compile(r"-?\d{1,9}", re.ASCII)
_BYTES = re.compile(r"(\d{1,19})\s*(?:([KMGT])(?:iB)?)?", re.IGNORECASE | re.ASCII)
_EXPONENTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_MOST_BYTES = 1 << 62
_MOST_TREES = 1 << 20

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")

profile_option = click.option(
    "--profile", "profile_spec", metavar="NAME|FILE", help="Costs of the machine.  [default: by topology]"
)


def topology_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add T, and the options that answer what a foreign file does not say; `import --help` lists those."""
    return click.argument("topology_spec", metavar="T")(import_options(command, hidden=True))


if TYPE_CHECKING:
    from forestsyn.core.wish import Wish


def collective_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `-c` and `--root`."""
    collective = click.option(
        "-c",
        "--collective",
        type=click.Choice([str(collective) for collective in Collective]),
        default=str(Collective.ALLGATHER),
        show_default=True,
        callback=lambda _context, _option, value: Collective(value),
        help="What the ranks do.",
    )
    return collective(root_option(command))


def root_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--root`."""
    return click.option(
        "--root",
        metavar="RANK",
        callback=lambda _context, _option, value: parse_root(value),
        help="Root of broadcast and reduce, by number or name.  [default: 0]",
    )(command)


def tree_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--trees`, `--tolerance`, `--max-depth` and `--max-peers`."""
    trees = click.option(
        "--trees",
        metavar="auto|exact|K",
        default="auto",
        show_default=True,
        callback=lambda _context, _option, value: parse_trees(value),
        help="Trees per root: the fewest within the tolerance, as many as the optimum takes, or K.",
    )
    tolerance = click.option(
        "--tolerance",
        metavar="SHARE",
        default="2%",
        show_default=True,
        callback=lambda _context, _option, value: parse_share(value, "--tolerance"),
        help="What auto may give up of the optimum.",
    )
    depth = click.option(
        "--max-depth",
        type=click.IntRange(min=1),
        metavar="N",
        help="Transfers in a chain at most; may cost throughput.",
    )
    peers = click.option(
        "--max-peers", type=click.IntRange(min=1), metavar="N", help="Peers of a rank at most; may cost throughput."
    )
    return trees(tolerance(depth(peers(command))))


def parse_wish(max_depth: int | None, max_peers: int | None) -> Wish | None:
    """The wish that `--max-depth` and `--max-peers` express, None for neither."""
    if max_depth is None and max_peers is None:
        return None
    from forestsyn.core.wish import Wish

    return Wish(max_depth=max_depth, max_peers=max_peers)


def byte_option(name: str, text: str) -> Callable[..., Any]:
    """An option that takes a number of bytes, 0 unless given."""
    return click.option(
        name,
        metavar="BYTES",
        default="0",
        show_default=True,
        callback=lambda _context, _option, value: parse_bytes(value, name),
        help=text,
    )


def parse_root(text: str | None) -> int | str | None:
    """A rank by its number, or the name of one; only the topology can tell whether it exists."""
    if text is not None and _RANK.fullmatch(text):
        return int(text)
    return text


def parse_byte_range(text: str, where: str) -> tuple[int, int]:
    """Both ends of a range of sizes such as ``1K:16G``. Raises InputError."""
    low, colon, high = text.partition(":")
    if not colon:
        raise InputError(f"'{text}' is not a range of sizes", where=where, hint=f"write {where} 1K:16G")
    return parse_bytes(low, where), parse_bytes(high, where)


def parse_share(text: str, where: str) -> Fraction:
    """A share from 0 to below 1, written ``2%``, ``0.02`` or ``1/50``. Raises InputError."""
    match = _SHARE.fullmatch(text.strip())
    try:
        share = Fraction(match[1]) / (100 if match[2] else 1) if match else Fraction(1)
    except (ValueError, ZeroDivisionError):  # 1.5/2 and 1/0
        share = Fraction(1)
    if share >= 1:
        raise InputError(f"'{text}' is not a share from 0% to below 100%", where=where, hint="write it as 2% or 0.02")
    return share


def parse_trees(text: str) -> Literal["auto", "exact"] | int:
    """``auto``, ``exact`` or a number of trees per root. Raises InputError."""
    if text == "auto":
        return "auto"
    if text == "exact":
        return "exact"
    if text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= _MOST_TREES:
        return int(text)
    raise InputError(
        f"'{text}' is not a number of trees per root",
        where="--trees",
        hint=f"write auto, exact or a number from 1 to {_MOST_TREES:,}",
    )


def parse_bytes(text: str, where: str) -> int:
    """A size such as ``65536``, ``64K``, ``1MiB`` or ``2G``; the letters are powers of 1024. Raises InputError."""
    match = _BYTES.fullmatch(text.strip())
    count = int(match[1]) << _EXPONENTS[(match[2] or "").upper()] if match else _MOST_BYTES + 1
    if count > _MOST_BYTES:
        raise InputError(
            f"'{text}' is not a size", where=where, hint="write bytes, or 64K, 1MiB, 2G in powers of 1024"
        )
    return count

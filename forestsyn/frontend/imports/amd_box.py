"""Pairs of AMD GPUs as a box: direct xGMI links, and PCIe where xGMI does not join all.

A weight of 15 is one xGMI hop; more is data that another GPU passes on, which is no link of its own. The tables
do not tell one xGMI link between two GPUs from four, so that is taken from the part, from its bandwidth, or asked.
"""

from __future__ import annotations

import re
from fractions import Fraction

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import Box, box_found
from forestsyn.frontend.imports.kinds import Found, Options, Question
from forestsyn.frontend.imports.matrix_box import add_pcie_tree
from forestsyn.frontend.imports.matrix_tree import SAME_CPU, build_tree, classes_at
from forestsyn.frontend.imports.models import Model, find_model, model_names
from forestsyn.frontend.imports.pair_links import joined_sets
from forestsyn.units import format_count

_DIRECT_WEIGHT = 15
_SAME_SOCKET_WEIGHT = 40
_SAME_SOCKET_HOPS = 2
_BANDWIDTH = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of pairs of GPU numbers: type of link, weight, hops, `min-max` in MB/s; and NUMA nodes."""

    gpus: int
    types: dict[tuple[int, int], str]
    weights: dict[tuple[int, int], int] = {}
    hops: dict[tuple[int, int], int] = {}
    bandwidths: dict[tuple[int, int], str] = {}
    numa: dict[int, int] = {}


def whole_numbers(cells: dict[tuple[int, int], str], what: str, source: str) -> dict[tuple[int, int], int]:
    """The cells of a table of numbers; N/A is left out. Raises InputError."""
    found: dict[tuple[int, int], int] = {}
    for pair, cell in cells.items():
        if cell in ("N/A", "-"):
            continue
        if not re.fullmatch(r"[0-9]{1,6}", cell):
            raise InputError(
                f"the {what} of GPU{pair[0]} and GPU{pair[1]} is '{cell[:20]}', expected a number",
                where=source,
                hint="partitioned GPUs (TPX, CPX) print no usable table",
            )
        found[pair] = int(cell)
    return found


def amd_found(pairs: Pairs, *, kind: str, source: str, options: Options) -> Found:
    """The box of `pairs`. Raises InputError when the tables contradict themselves or the model."""
    box = Box()
    names = [box.add("gpus", f"gpu{number}") for number in range(pairs.gpus)]
    direct = _direct_pairs(pairs, box, source)
    counts = {frozenset((names[one], names[other])): 1 for one, other in direct}
    sets = joined_sets(names, counts)
    _add_xgmi(box, pairs, direct, names, options, source)
    if len(sets) == 1 and pairs.gpus > 1:
        box.note("the PCIe paths between GPUs are left out, since xGMI joins all of them")
    elif pairs.gpus > 1:
        _add_pcie(box, pairs, direct, names, options)
    return box_found(box, kind=kind, source=source, options=options)


def _direct_pairs(pairs: Pairs, box: Box, source: str) -> list[tuple[int, int]]:
    direct: list[tuple[int, int]] = []
    relayed = 0
    for one in range(pairs.gpus):
        for other in range(one + 1, pairs.gpus):
            word = _agreed(pairs.types, one, other, source)
            if word not in ("XGMI", "PCIE"):
                raise InputError(
                    f"the link of GPU{one} and GPU{other} is '{word[:20]}', expected XGMI or PCIE",
                    where=source,
                    hint="the table is cut short, or the GPUs are partitioned (TPX, CPX)",
                )
            if word != "XGMI":
                continue
            if pairs.weights.get((one, other), _DIRECT_WEIGHT) > _DIRECT_WEIGHT:
                relayed += 1
            else:
                direct.append((one, other))
    if relayed:
        box.note(f"{relayed} pairs reach each other over xGMI through another GPU; they have no link of their own")
    return direct


def _agreed(cells: dict[tuple[int, int], str], one: int, other: int, source: str) -> str:
    word, back = cells.get((one, other), "missing"), cells.get((other, one), "missing")
    if word != back:
        raise InputError(
            f"GPU{one} to GPU{other} is {word[:20]} and back is {back[:20]}, expected the same", where=source
        )
    return word.upper()


def _add_xgmi(
    box: Box, pairs: Pairs, direct: list[tuple[int, int]], names: list[str], options: Options, source: str
) -> None:
    model: Model | None = None
    if options.gpu is not None:
        model = find_model(options.gpu)
    for one, other in direct:
        stated = _stated_bandwidth(pairs.bandwidths.get((one, other), ""))
        if stated is not None and options.xgmi is None:
            box.link(names[one], names[other], {"bw": stated})
        elif model is None:
            question = Question("--gpu", "which model the GPUs are, and so how fast xGMI is", model_names("xgmi"))
            box.ask(question)
        else:
            count = options.xgmi or _links_of_pair(model, source)
            why = None if options.xgmi else f"{model.name}: {format_count(count, 'link')} between two GPUs"
            box.link(names[one], names[other], {"xgmi": count, **dict(model.rate)}, why)
    if model is not None and model.link == "xgmi":
        _check_degrees(direct, model, (options.xgmi or 1), source)


def _stated_bandwidth(cell: str) -> str | None:
    match = _BANDWIDTH.fullmatch(cell)
    if match is None or int(match[2]) == 0:
        return None
    gigabytes = Fraction(max(int(match[1]), int(match[2])), 1000)
    whole, rest = divmod(gigabytes, 1)
    return f"{whole}{f'{float(rest):.3f}'[1:].rstrip('0').rstrip('.')} GB/s"


def _links_of_pair(model: Model, source: str) -> int:
    if model.link != "xgmi":
        raise InputError(f"the GPUs are linked by xGMI, and {model.name} has none", where="--gpu")
    if model.pairs is None:
        raise InputError(
            f"this table does not tell how many xGMI links join two GPUs, and that differs on {model.name}",
            where=source,
            hint="give --machine mi250x-8gcd (4 boards) or --machine mi250 (8 boards), or an RCCL topology XML",
        )
    return model.pairs


def _check_degrees(direct: list[tuple[int, int]], model: Model, count: int, source: str) -> None:
    degrees: dict[int, int] = {}
    for pair in direct:
        for gpu in pair:
            degrees[gpu] = degrees.get(gpu, 0) + count
    worst = max(degrees, key=lambda gpu: degrees[gpu], default=None)
    if worst is not None and degrees[worst] > model.links:
        raise InputError(
            f"GPU{worst} would need {degrees[worst]} xGMI links, and {model.name} has {model.links}",
            where=source,
            hint="check --gpu and --xgmi; some pairs may be relayed by other GPUs",
        )


def _add_pcie(box: Box, pairs: Pairs, direct: list[tuple[int, int]], names: list[str], options: Options) -> None:
    numbers = {name: number for number, name in enumerate(names)}

    def distance(one: str, other: str) -> int | None:
        pair = tuple(sorted((numbers[one], numbers[other])))
        key = (pair[0], pair[1])
        if pairs.types.get(key, "").upper() == "XGMI":
            return None
        far = pairs.weights.get(key, 0) > _SAME_SOCKET_WEIGHT or pairs.hops.get(key, 0) > _SAME_SOCKET_HOPS
        return SAME_CPU + 1 if far else SAME_CPU

    first: dict[int, str] = {}
    together: list[tuple[str, str]] = []
    for number, node in pairs.numa.items():
        if node >= 0 and number < len(names):
            together.append((first.setdefault(node, names[number]), names[number]))
    classes = classes_at(names, distance, SAME_CPU)
    for one, other in together:
        classes.join(one, other)
    for low, high in direct:
        one, other = names[low], names[high]
        if classes.find(one) != classes.find(other) and low not in pairs.numa:
            together.append((one, other))
            box.note("GPUs that xGMI joins are taken to share a CPU; the file does not say where they are attached")
    if not (pairs.weights or pairs.hops or pairs.numa):
        box.note("the file gives no distances, so that all GPUs are taken to share a CPU")
    add_pcie_tree(box, build_tree(names, distance, together), {name: name for name in names}, options)

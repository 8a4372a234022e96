"""Links counted between pairs of GPUs: do they run from GPU to GPU, or to a switch?

Rule. Let L be the links that the part has and s the sum of a GPU's counts. If s <= L for all, each count is so many
wires between the two. If s > L, the wires lead to a switch and each count says what both ends have: then there are
numbers c with count(i, j) = min(c(i), c(j)), and GPU i has c(i) links to the switch. Anything else contradicts the
part. The rule is applied to each set of GPUs that links join.
"""

from __future__ import annotations

from collections.abc import Sequence

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import Box
from forestsyn.frontend.imports.matrix_tree import Classes
from forestsyn.frontend.imports.models import Model
from forestsyn.units import format_count

Counts = dict[frozenset[str], int]


def joined_sets(gpus: Sequence[str], counts: Counts) -> list[list[str]]:
    """The sets of GPUs that links join, those of one GPU included."""
    classes = Classes(gpus)
    place = {gpu: number for number, gpu in enumerate(gpus)}
    for pair in counts:
        one, other = sorted(pair, key=lambda gpu: place[gpu])
        classes.join(one, other)
    return classes.groups()


def add_pair_links(
    box: Box,
    members: Sequence[str],
    counts: Counts,
    model: Model | None,
    *,
    switched: bool | None,
    known: bool = True,
    where: str,
) -> None:
    """Add the links of one joined set to `box`, whose GPU names `counts` uses.

    Without a model nothing is added: a question has been asked. `known` is False where some pairs of the set are not
    given, which only a switch makes good. Raises InputError where the counts contradict the model.
    """
    sums = {gpu: sum(counts.get(frozenset((gpu, peer)), 0) for peer in members if peer != gpu) for gpu in members}
    if model is None:
        return
    if model.link is None:
        raise InputError(
            f"{members[0]} shows NVLinks, and {model.name} has none", where="--gpu", hint="which model is it really?"
        )
    to_switch = _to_switch(members, counts)
    most = max(sums, key=lambda gpu: sums[gpu])
    if switched is False or (switched is None and sums[most] <= model.links and known):
        _add_direct(box, members, counts, model, sums, most, where)
        return
    if to_switch is None:
        raise _contradiction(model, most, sums[most], switched, where)
    worst = max(to_switch.values())
    if worst > model.links:
        raise _contradiction(model, most, worst, switched, where)
    _add_switch(box, to_switch, model)


def _add_direct(
    box: Box, members: Sequence[str], counts: Counts, model: Model, sums: dict[str, int], most: str, where: str
) -> None:
    if sums[most] > model.links:
        raise _contradiction(model, most, sums[most], False, where)
    for position, one in enumerate(members):
        for other in members[position + 1 :]:
            count = counts.get(frozenset((one, other)), 0)
            if count:
                box.link(one, other, {str(model.link): count, **dict(model.rate)})


def _add_switch(box: Box, to_switch: dict[str, int], model: Model) -> None:
    switch = box.add("switches", "nvsw")
    usual = max(to_switch.values())
    for gpu, count in to_switch.items():
        box.link(gpu, switch, {str(model.link): count, **dict(model.rate)})
        if count < usual:
            links = format_count(count, "link")
            box.note(f"{gpu} has {links} to the switch, its siblings {usual}: some of its links are down")


def _to_switch(members: Sequence[str], counts: Counts) -> dict[str, int] | None:
    """c(i) with count(i, j) = min(c(i), c(j)) for all given pairs, or None. A lone lowest pair is not a failure."""
    most = {gpu: max(counts.get(frozenset((gpu, peer)), 0) for peer in members if peer != gpu) for gpu in members}
    for pair, count in counts.items():
        if pair <= most.keys() and count != min(most[gpu] for gpu in pair):
            return None
    return most


def _contradiction(model: Model, gpu: str, count: int, switched: bool | None, where: str) -> InputError:
    ways = {True: "through a switch", False: "from GPU to GPU", None: "in any way"}
    return InputError(
        f"{gpu} would need {format_count(count, 'link')} {ways[switched]}, and {model.name} has {model.links}",
        where=where,
        hint="check --gpu and --nvswitch; the counts fit no wiring of this model",
    )

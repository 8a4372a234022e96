"""TE-CCL's JSON: `TopologyParams` names a class of its program; the matrix is in there, not in the file.

The classes that are machines become those of the catalog, and that is said. `Mesh` is written out: GPU i with i ± 1
and i ± side, so that the end of each row meets the beginning of the next, as the program has it.
"""

from __future__ import annotations

from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import header
from forestsyn.frontend.imports.compose_network import Network
from forestsyn.frontend.imports.kinds import Found, Guess, Options
from forestsyn.frontend.imports.simai_rates import link_answer, link_question
from forestsyn.frontend.imports.taccl_json import load_object, whole

#: Machine of the catalog, and what TE-CCL's own class counts otherwise.
_MACHINES = {
    "ndv2": ("ndv2", "TE-CCL joins two nodes by one cable each way"),
    "dgx1": ("dgx1v", "TE-CCL counts 25 GB/s a link, as here"),
    "dgx2": ("dgx2", "TE-CCL counts 125 GB/s for each GPU, and cables odd GPUs to even ones"),
    "amd": ("mi250", "TE-CCL counts 50 GB/s a link, as here, and 25 GB/s for two GPUs to a switch"),
}


class TecclJson:
    """The reader."""

    kind = "teccl-input"
    title = "TE-CCL JSON"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        return 95 if '"TopologyParams"' in head else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The machine or mesh. Raises InputError."""
        value = load_object(text, source=source)
        params = value.get("TopologyParams")
        if not isinstance(params, dict):
            raise InputError("'TopologyParams' is missing", where=source)
        name = str(params.get("name", ""))
        if name.lower() == "mesh":
            return _mesh(params, self.kind, source, options)
        if name.lower() not in _MACHINES:
            raise InputError(
                f"TE-CCL's class '{name[:40]}' is not known; the matrix is in its program, not in this file",
                where=source,
                hint=f"known: {', '.join((*_MACHINES, 'mesh'))}; or describe the machine in a native file",
            )
        return _machine(params, self.kind, source, options)


def _machine(params: dict[str, Any], kind: str, source: str, options: Options) -> Found:
    machine, differs = _MACHINES[str(params["name"]).lower()]
    chassis = whole(params, "chassis", source, maximum=1024)
    if machine == "dgx1v" and chassis > 1:
        raise InputError("TE-CCL's DGX1 is one chassis", where=source)
    use = options.machine or f"{machine}:{chassis}"
    guess = Guess(("use",), "the file names a class of TE-CCL; the figures are the catalog's")
    if options.machine is not None:
        guess = Guess(("use",), "given by --machine")
    return Found(
        kind=kind,
        document={**header(source, options), "use": use},
        guesses=(guess,),
        notes=() if options.machine is not None else (f"{use} stands for '{params['name']}'; {differs}",),
    )


def _mesh(params: dict[str, Any], kind: str, source: str, options: Options) -> Found:
    side = whole(params, "side_length", source, minimum=2, maximum=100)
    rate, why = link_answer(options)
    network = Network(source)
    if rate is None:
        network.ask(link_question("how fast the links of the mesh are (100GB/s in TE-CCL's program)"))
    names = [network.add("gpu", f"gpu{number}") for number in range(side * side)]
    for number, name in enumerate(names):
        for other in sorted({number + 1, number + side}):
            if other < len(names):
                network.link(name, names[other], rate, why)
    network.note("the last GPU of a row is linked to the first of the next, as TE-CCL's program has it")
    return network.found(kind, options)

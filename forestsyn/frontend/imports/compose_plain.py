"""Host templates: from a file's document, from a machine of the catalog, or plain ones made of numbers."""

from __future__ import annotations

from typing import Any

from forestsyn.errors import InputError
from forestsyn.frontend.imports.answers import nic_answer, nic_question
from forestsyn.frontend.imports.box import clean_name
from forestsyn.frontend.imports.kinds import Found, Guess, HostTemplate, Options, Question
from forestsyn.frontend.imports.models import find_model, model_names
from forestsyn.frontend.pattern import expand_names
from forestsyn.ir.topology import Topology, VertexKind

_BOX_KEYS = ("gpus", "switches", "nics", "cpus", "links")
_MAXIMUM_GPUS = 1024


def found_template(found: Found, *, pattern: str, source: str) -> HostTemplate:
    """The box that a reader found as a template. Raises InputError when the file describes more than one host."""
    document = found.document
    if "use" in document:
        raise InputError("--machine says what a host is; give its name to --host", where=source)
    if "hosts" in document or not any(key in document for key in _BOX_KEYS):
        raise InputError(
            "the host file describes more than one host", where=source, hint="give the output of one host"
        )
    template = {key: document[key] for key in _BOX_KEYS if key in document}
    ports = _names(document.get("nics", 0), "nic") or _names(document.get("gpus", 0), "gpu")
    return HostTemplate(
        pattern=pattern,
        name=clean_name(str(document["name"])) or "host",
        template=template,
        ports=ports if document.get("nics") else (),
        guesses=found.guesses,
        notes=tuple(f"{source}: {note}" for note in found.notes),
    )


def machine_template(name: str, topology: Topology, *, pattern: str) -> HostTemplate:
    """A machine of the catalog as a template; `topology` is two of it, or one where it has no count."""
    first = topology.rank_host(0)
    if first is None:
        raise InputError(f"'{name}' is a shape of bare GPUs, not a host", where="--host", hint="name a machine")
    devices = [vertex for vertex in topology.vertices if vertex.host == first]
    start = len(first) + 1
    nics = tuple(vertex.name[start:] for vertex in devices if vertex.kind is VertexKind.NIC)
    gpus = tuple(vertex.name[start:] for vertex in devices if vertex.kind is VertexKind.GPU)
    guess = Guess(("use",), "given by --host; all figures of the host are the catalog's")
    return HostTemplate(
        pattern=pattern, name=clean_name(name), template={"use": name}, ports=nics or gpus, guesses=(guess,)
    )


def plain_template(ports: list[str], options: Options) -> tuple[HostTemplate, list[Question]]:
    """`--gpus-per-host` GPUs joined by the NVSwitch or full xGMI of `--gpu`, spread over the NICs `ports`."""
    count = options.gpus_per_host or 0
    if not 1 <= count <= _MAXIMUM_GPUS:
        raise InputError(f"{count} GPUs a host, expected 1 to {_MAXIMUM_GPUS:,}", where="--gpus-per-host")
    questions: list[Question] = []
    rate = nic_answer(options)
    links: list[dict[str, Any]] = []
    template: dict[str, Any] = {"gpus": count}
    guesses: list[Guess] = [Guess(("gpus",), "given by --gpus-per-host")]
    if count > 1:
        _join_gpus(template, links, guesses, questions, options)
    template["nics"] = list(ports)
    if rate is None:
        questions.append(nic_question())
    else:
        for number in range(max(count, len(ports))):
            gpu, nic = number * count // max(count, len(ports)), number * len(ports) // max(count, len(ports))
            guesses.append(Guess(("links", len(links), "nic"), "GPUs are spread evenly over the NICs"))
            links.append({"from": f"gpu{gpu}", "to": ports[nic], **rate})
    if links:
        template["links"] = links
    return (
        HostTemplate(pattern="*", name="host", template=template, ports=tuple(ports), guesses=tuple(guesses)),
        questions,
    )


def _join_gpus(
    template: dict[str, Any],
    links: list[dict[str, Any]],
    guesses: list[Guess],
    questions: list[Question],
    options: Options,
) -> None:
    if options.gpu is None:
        choices = (*model_names("nvlink"), *model_names("xgmi"))
        questions.append(Question("--gpu", "which model the GPUs of a host are", choices))
        return
    model = find_model(options.gpu)
    if model.link is None:
        raise InputError(
            f"the GPUs of a host need links between them, and {model.name} has none",
            where="--gpu",
            hint="give --host FILE, the output of nvidia-smi topo -m on one host",
        )
    if model.link == "nvlink":
        template["switches"] = ["nvsw"]
        links.append({"from": "gpu*", "to": "nvsw", "nvlink": model.links, **dict(model.rate)})
        guesses.append(Guess(("links", 0, "nvlink"), f"all NVLinks of a {model.name} lead to one switch"))
    else:
        links.append({"from": "gpu*", "to": "gpu*", "xgmi": model.pairs or 1, **dict(model.rate)})
        guesses.append(Guess(("links", 0, "xgmi"), "every two GPUs are taken to be joined"))


def _names(devices: Any, prefix: str) -> tuple[str, ...]:
    if isinstance(devices, int):
        return tuple(f"{prefix}{number}" for number in range(devices))
    if isinstance(devices, list):
        return tuple(name for pattern in devices for name in expand_names(pattern, {}))
    return ()

"""`forestsyn import`: what other tools print, as a native topology file, or a topology for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forestsyn.cli.import_options import import_options, import_request
from forestsyn.cli.options import json_option
from forestsyn.cli.output import (
    STANDARD_OUTPUT,
    Row,
    check_output,
    file_facts,
    output_option,
    print_facts,
    print_json,
    write_output,
)
from forestsyn.units import format_count

if TYPE_CHECKING:
    from forestsyn.frontend.imports.kinds import Found
    from forestsyn.ir.topology import Topology

_FORMATS = ("yaml", "graph-json", "graph-gml", "graph-graphml", "graph-dot", "ns3-topology", "taccl-topology")


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@output_option("Write the result; - is standard output.")
@click.option(
    "--to",
    "target",
    type=click.Choice(_FORMATS),
    default="yaml",
    show_default=True,
    help="Format to write; any but yaml takes native files and machines too.",
)
@json_option
@import_options
def import_(files: Sequence[str], output: Path | None, target: str, as_json: bool) -> None:
    """Read what other tools print and write a native topology file, with a comment at every guess.

    The kind of each FILE is recognized: nvidia-smi topo -m, NCCL's topology XML, rocm-smi, amd-smi, hwloc,
    ibnetdiscover, Slurm, topograph, Kubernetes labels, ASTRA-sim, ns-3, SimAI, htsim, TACCL, TE-CCL, node-link JSON,
    GML, GraphML, DOT. What a file does not say is asked for by an option. A fabric and a file about its hosts go
    together. Every verb that takes a topology takes such a file, and these options, too.

    \b
    Examples:
      forestsyn import smi.txt --gpu a100 --nic 200G -o box.yaml
      forestsyn import ibnet.out --host smi.txt -o cluster.yaml
      forestsyn import smi.txt --hosts 4 --fabric rails --link 200G -o cluster.yaml
      forestsyn import topology.conf --host dgx-h100 --link 400G --oversubscription 1,2 -o cluster.yaml
      forestsyn import dgx-a100:2 --to graph-json -o graph.json
      forestsyn bound smi.txt --gpu a100
    """
    check_output(output, as_json)
    found, topology, text = _result(files, target)
    summary = _summary(found, topology)
    summary["files"] = write_output(output, text)
    if as_json:
        print_json(summary)
    else:
        facts = [*_facts(summary), *file_facts(output)]
        print_facts(", ".join(files) + ":", facts, error_stream=output == STANDARD_OUTPUT)


def _result(files: Sequence[str], target: str) -> tuple[Found | None, Topology, str]:
    """What was found (None: T was native), its topology, and the text to write, which is read back."""
    from forestsyn.frontend import load_topology, parse_topology
    from forestsyn.frontend.imports.graph_export import emit_topology
    from forestsyn.frontend.imports.kinds import require_answers
    from forestsyn.frontend.imports.load import ImportRequest, find_foreign
    from forestsyn.frontend.imports.writing import document_text
    from forestsyn.frontend.native import is_foreign

    request = import_request() or ImportRequest()
    if len(files) == 1 and not request.is_given and not is_foreign(files[0]):
        topology = load_topology(files[0])
        return None, topology, emit_topology(topology, target)
    found = find_foreign(files, request)
    require_answers(found, source=files[0])
    text = document_text(found, sources=[Path(name).name for name in files])
    topology = parse_topology(text, source="the result")
    return found, topology, text if target == "yaml" else emit_topology(topology, target)


def _summary(found: Found | None, topology: Topology) -> dict[str, Any]:
    guesses: dict[str, int] = {}
    for guess in found.guesses if found is not None else ():
        guesses[guess.text] = guesses.get(guess.text, 0) + 1
    return {
        "kind": "native" if found is None else found.kind,
        "ranks": topology.rank_count,
        "hosts": len({vertex.host for vertex in topology.vertices if vertex.host is not None}),
        "vertices": len(topology.vertices),
        "links": len(topology.links),
        "rates": topology.rates,
        "guesses": [{"text": text, "count": count} for text, count in guesses.items()],
        "notes": list(dict.fromkeys((*(found.notes if found is not None else ()), *topology.notes))),
        "files": [],
    }


def _facts(summary: dict[str, Any]) -> list[Row]:
    hosts = format_count(summary["hosts"], "host") if summary["hosts"] else "no named hosts"
    devices, links = format_count(summary["vertices"], "device"), format_count(summary["links"], "directed link")
    return [
        ("kind", summary["kind"]),
        ("ranks", f"{summary['ranks']} on {hosts}"),
        ("size", f"{devices}, {links}; {summary['rates']} rates"),
        *(("guess", f"{guess['text']} ({guess['count']} x)") for guess in summary["guesses"]),
        *(("note", note) for note in summary["notes"]),
    ]

"""A user who answers what a reader asks, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import yaml

from forestsyn.frontend import parse_topology
from forestsyn.frontend.imports.kinds import Found, Options, Question, Reader
from forestsyn.ir.topology import Topology
from tests.conftest import SHARED

CORPUS = SHARED / "data" / "topologies"

#: What is answered unless a test says otherwise, by option.
USUAL_ANSWERS: dict[str, str | bool | int] = {
    "--gpu": "a100",
    "--pcie": "gen4x16",
    "--nic": "200G",
    "--socket": "16GB/s",
    "--nvswitch": True,
    "--xgmi": 1,
}


def ask_until_complete(
    reader: Reader, text: str, *, source: str, options: Options | None = None, **answers: str | bool | int
) -> tuple[Found, list[str]]:
    """What the reader finds once each of its questions is answered, and the options that it asked for.

    Each option may be asked for once; at most three rounds are needed.
    """

    def answer(question: Question) -> tuple[str, str | bool | int]:
        name = question.option.removeprefix("--")
        return name, answers.get(name, USUAL_ANSWERS[question.option])

    return _ask(reader, text, source, options or Options(), answer, rounds=3)


def topology_of(found: Found) -> Topology:
    """The topology that the document describes, by way of YAML text."""
    return parse_topology(yaml.safe_dump(found.document, sort_keys=False), source="found.yaml")


#: Answers about fabrics and graphs, by option.
FABRIC_ANSWERS: dict[str, tuple[str, str | int]] = {
    "--link": ("link", "400G"),
    "--oversubscription": ("oversubscription", "1"),
    "--capacity-attr": ("capacity_attribute", "none"),
    "--gpu-attr": ("gpu_attribute", "all"),
    "--unit": ("unit", "Gb/s"),
    "--hosts": ("hosts", 2),
    "--gpus-per-host": ("gpus_per_host", 8),
    "--nics-per-host": ("nics_per_host", 8),
    "--gpu": ("gpu", "h100"),
    "--nic": ("nic", "400G"),
    "--machine": ("machine", "dgx2"),
    "--host": ("gpus_per_host", 8),
}


def complete_fabric(reader: Reader, text: str, *, source: str, options: Options) -> tuple[Found, list[str]]:
    """As `ask_until_complete`, for readers of fabrics, simulators and graphs."""
    return _ask(reader, text, source, options, lambda question: FABRIC_ANSWERS[question.option], rounds=4)


def _ask(
    reader: Reader,
    text: str,
    source: str,
    options: Options,
    answer: Callable[[Question], tuple[str, str | bool | int]],
    *,
    rounds: int,
) -> tuple[Found, list[str]]:
    asked: list[str] = []
    for _ in range(rounds + 1):
        found = reader.read(text, source=source, options=options)
        if not found.missing:
            return found, asked
        for question in found.missing:
            assert question.option not in asked, f"{question.option} is asked for twice"
            assert question.choices, f"{question.option} lists no choices"
            asked.append(question.option)
            field, value = answer(question)
            options = msgspec.structs.replace(options, **{field: value})
    raise AssertionError("the reader keeps asking")


def corpus_files(folders: Iterable[str]) -> list[Path]:
    """The files of folders of the corpus, in order."""
    return [path for folder in folders for path in sorted((CORPUS / folder).glob("*")) if path.is_file()]


def corpus_name(path: Path) -> str:
    """Folder and file, to tell cases apart."""
    return f"{path.parent.name}/{path.name}"

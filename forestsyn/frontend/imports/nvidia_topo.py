"""`nvidia-smi topo -m`: the reader."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forestsyn.errors import InputError
from forestsyn.frontend.imports.box import Box, box_found, machine_found
from forestsyn.frontend.imports.kinds import Found, Options, Question
from forestsyn.frontend.imports.matrix import Matrix, find_matrices
from forestsyn.frontend.imports.matrix_box import add_direct_nics, add_pcie_tree, choose_rails, note_left_out
from forestsyn.frontend.imports.matrix_tree import LEVELS, SAME_CPU, build_tree, classes_at
from forestsyn.frontend.imports.models import Model, find_model, guess_model, model_names
from forestsyn.frontend.imports.nvidia_helpers import (
    GpuStatus,
    inactive_sentences,
    is_peer_matrix,
    not_peers,
    read_status,
    remotes_are_switches,
)
from forestsyn.frontend.imports.pair_links import Counts, add_pair_links, joined_sets
from forestsyn.frontend.imports.text import host_lines

_HEADER = re.compile(r"^[ \t>|`\u00a0\ufeff]*(?:\x1b\[[0-9;]*m)?[ \t|]*GPU0(?:[\s|]|$)", re.MULTILINE)
_GPU_LINE = re.compile(r"^[ \t]*GPU[ \t]+[0-9]+[ \t]*:.", re.MULTILINE)
_LINK_LINE = re.compile(r"^[ \t]*Link[ \t]+[0-9]+[ \t]*:", re.MULTILINE)
_WORDS = re.compile(r"\b(?:NV[0-9]+|PIX|PXB|PHB|NODE|SYS|SOC)\b")
_PEER_WORDS = re.compile(r"\b(?:OK|CNS|GNS|TNS)\b")


class NvidiaTopo:
    """`nvidia-smi topo -m`, with the output of `-L`, `nvlink -s`, `nvlink -R` and `topo -p2p` beside it or in it."""

    kind = "nvidia-smi-topo"
    title = "nvidia-smi topo -m"
    helps: str | None = None

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100, that this is a distance matrix."""
        if _HEADER.search(head) is None or "between two GPUs" in head:
            return 0
        if _WORDS.search(head):
            return 90
        return 20 if _PEER_WORDS.search(head) else 40

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """The box that the matrix describes. Raises InputError when it cannot be trusted."""
        lines = host_lines(text, source=source)
        matrix, peers = _matrices(lines, source, options)
        machine = machine_found(options, kind=self.kind, source=source, gpus=len(matrix.gpus))
        if machine is not None:
            return machine
        status = read_status(lines)
        for helper in options.helpers:
            status.update(read_status(host_lines(helper.text, source=helper.source)))
        return _BoxReader(matrix, peers, status, source, options).found(self.kind)


def _matrices(lines: list[str], source: str, options: Options) -> tuple[Matrix, list[Matrix]]:
    """The one matrix of distances, and those of peer access."""
    found = find_matrices(lines, source=source)
    for helper in options.helpers:
        found += find_matrices(host_lines(helper.text, source=helper.source), source=helper.source)
    peers = [matrix for matrix in found if is_peer_matrix(matrix)]
    distances = [matrix for matrix in found if not is_peer_matrix(matrix)]
    if not distances:
        raise InputError(
            "there is no matrix of 'nvidia-smi topo -m' here" + _what_else(lines, peers),
            where=source,
            hint="run 'nvidia-smi topo -m' on the host and give its whole output",
        )
    first = distances[0]
    for other in distances[1:]:
        if (other.labels, other.cells) != (first.labels, first.cells):
            raise InputError(
                f"there are {len(distances)} different matrices here, at lines {first.line} and {other.line}",
                where=source,
                hint="give one matrix in a file: each host is read alone",
            )
    return first, peers


def _what_else(lines: list[str], peers: list[Matrix]) -> str:
    if peers:
        return ", only one of peer access (topo -p2p)"
    sentences = inactive_sentences(read_status(lines))
    return f"; found: {'; '.join(sentences[:8])}" if sentences else ""


class _BoxReader:
    """One matrix on its way to a box."""

    def __init__(
        self, matrix: Matrix, peers: list[Matrix], status: dict[int, GpuStatus], source: str, options: Options
    ) -> None:
        self.matrix, self.status, self.source, self.options = matrix, status, source, options
        self.where = f"{source}:{matrix.line}"
        self.blocked = not_peers(peers)
        self.box = Box()
        self.names: dict[str, str] = {}
        self.gpus = matrix.gpus

    def found(self, kind: str) -> Found:
        """The whole box."""
        for label in self.gpus:
            self.names[label] = self.box.add("gpus", label.lower())
        for sentence in inactive_sentences(self.status):
            self.box.note(sentence)
        sets = joined_sets(self.gpus, self._counts())
        self._add_nvlinks(sets)
        rails, left = choose_rails(self.gpus, self.matrix.others, self._distance, self.options)
        note_left_out(self.box, left)
        for label in rails:
            self.names[label] = self.box.add("nics", self._nic_name(label))
        if len(sets) == 1 and len(self.gpus) > 1:
            add_direct_nics(self.box, rails, self.gpus, self.names, self.options)
            self.box.note("the PCIe paths between GPUs are left out, since NVLink joins all of them")
        elif len(self.gpus) > 1:
            self._add_pcie([*self.gpus, *rails])
        self._note_blocked()
        return box_found(self.box, kind=kind, source=self.source, options=self.options)

    def _distance(self, one: str, other: str) -> int | None:
        word = self.matrix.between(one, other)
        return None if word is None else LEVELS.get(word)

    def _counts(self) -> Counts:
        """NVLinks of each pair that may use them."""
        return {pair: count for pair, count in self._listed_counts().items() if pair not in self.blocked}

    def _listed_counts(self) -> Counts:
        counts: Counts = {}
        for position, one in enumerate(self.gpus):
            for other in self.gpus[:position]:
                word = self.matrix.between(one, other) or ""
                if word.startswith("NV") and int(word[2:]) > 0:
                    counts[frozenset((one, other))] = int(word[2:])
        return counts

    def _unknown(self, members: Sequence[str]) -> list[str]:
        """GPUs of `members` of which some distance to another member is not given."""
        return [
            one
            for position, one in enumerate(members)
            if any(self.matrix.between(one, other) is None for other in members[:position])
        ]

    def _add_nvlinks(self, sets: list[list[str]]) -> None:
        for members in sets:
            if len(members) < 2:
                continue
            models = [self._model(label) for label in members]
            unknown = self._unknown(members)
            if unknown:
                rows = [label for label in members if label in self.matrix.missing_rows] or unknown
                self.box.note(
                    f"the rows of {', '.join(rows)} are missing; other rows give their links, and NICs near them may "
                    "be missed"
                )
            named = {
                frozenset(self.names[label] for label in pair): count
                for pair, count in self._counts().items()
                if pair <= set(members)
            }
            if any(model is None for model in models):
                choices = model_names("nvlink", max(named.values()))
                self.box.ask(Question("--gpu", "which model the GPUs are, and so how fast an NVLink is", choices))
            switched = self.options.nvswitch
            if switched is None:
                switched = remotes_are_switches(self.status)
            linked = [model for model in models if model is not None]
            slowest = min(linked, key=lambda model: model.links, default=None)
            add_pair_links(
                self.box,
                [self.names[label] for label in members],
                named,
                slowest if len(linked) == len(models) else None,
                switched=switched,
                known=not unknown,
                where=self.where,
            )

    def _model(self, label: str) -> Model | None:
        """The model of a GPU: from --gpu (one for all, or a list by number), else from what nvidia-smi printed."""
        if self.options.gpu is not None:
            given = [find_model(text) for text in self.options.gpu.split(",")]
            if len(given) not in (1, len(self.gpus)):
                raise InputError(
                    f"{len(given)} models are given for {len(self.gpus)} GPUs", where="--gpu", hint="give one for all"
                )
            return given[0] if len(given) == 1 else given[self.gpus.index(label)]
        status = self.status.get(int(label.removeprefix("GPU")))
        return guess_model(status.name) if status is not None else None

    def _add_pcie(self, labels: list[str]) -> None:
        gpus = list(self.gpus)
        blind = self._unknown(gpus)
        if blind:
            raise InputError(
                f"the rows of {', '.join(blind[:8])} are missing, so where they are attached is not known",
                where=self.where,
                hint="paste the whole output of 'nvidia-smi topo -m'",
            )
        affinity = self._same_affinity()
        tree = build_tree(labels, self._distance, [*affinity, *self._nvlink_neighbours(labels, affinity)])
        for group in tree:
            devices = group.all_devices()
            if not any(device in self.gpus for device in devices):
                self.box.note(f"the NUMA node of {', '.join(devices[:8])} is not given; one of their own is supposed")
        add_pcie_tree(self.box, tree, self.names, self.options, frozenset(self.blocked))

    def _same_affinity(self) -> list[tuple[str, str]]:
        """GPUs of one NUMA node by the affinity columns; where the matrix says SYS between them, that is told."""
        table = self.matrix.numa_affinity or self.matrix.cpu_affinity
        first: dict[str, str] = {}
        pairs: list[tuple[str, str]] = []
        for gpu in self.gpus:
            place = table.get(gpu)
            if place is None:
                continue
            if place in first:
                pairs.append((first[place], gpu))
                if self._distance(first[place], gpu) == LEVELS["SYS"]:
                    self.box.note(
                        f"{first[place]} and {gpu} have the same affinity ({place}) and "
                        f"{self._word(first[place], gpu)} between them; the affinity is believed"
                    )
            first.setdefault(place, gpu)
        return pairs

    def _word(self, one: str, other: str) -> str:
        return self.matrix.between(one, other) or "nothing"

    def _nvlink_neighbours(self, labels: list[str], affinity: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """NVLink hides where a pair sits: without other evidence it sits on one CPU."""
        classes = classes_at(labels, self._distance, SAME_CPU)
        for one, other in affinity:
            classes.join(one, other)
        pairs = []
        table = self.matrix.numa_affinity or self.matrix.cpu_affinity
        for one, other in (sorted(pair) for pair in self._listed_counts()):
            if classes.find(one) != classes.find(other) and one not in table and other not in table:
                pairs.append((one, other))
                self.box.note(f"{one} and {other} are taken to share a CPU; NVLink hides their PCIe distance")
        return pairs

    def _nic_name(self, label: str) -> str:
        return self.matrix.aliases.get(label, label.lower() if label.startswith("NIC") else label)

    def _note_blocked(self) -> None:
        pairs = [sorted(pair) for pair in self.blocked]
        if pairs:
            shown = ", ".join(f"{one}-{other}" for one, other in sorted(pairs)[:6])
            more = f" and {len(pairs) - 6} more pairs" if len(pairs) > 6 else ""
            self.box.note(f"no peer access: {shown}{more}; their data is staged in host memory and takes PCIe twice")


class NvidiaHelper:
    """Texts that accompany a matrix and say too little alone."""

    kind = "nvidia-smi-nvlink"
    title = "nvidia-smi nvlink -s, nvlink -R, -L or topo -p2p"
    helps: str | None = NvidiaTopo.kind

    def recognizes(self, name: str, head: str) -> int:
        """How sure, 0 to 100."""
        if _GPU_LINE.search(head) and (_LINK_LINE.search(head) or "(UUID" in head):
            return 80
        return 60 if _HEADER.search(head) and _PEER_WORDS.search(head) and not _WORDS.search(head) else 0

    def read(self, text: str, *, source: str, options: Options) -> Found:
        """Refuse, with what the text does tell."""
        lines = host_lines(text, source=source)
        status = read_status(lines)
        machine = machine_found(options, kind=self.kind, source=source, gpus=len(status) or None)
        if machine is not None:
            return machine
        told = _told(status)
        matrix = any(is_peer_matrix(found) for found in find_matrices(lines, source=source))
        found = "which pairs have peer access" if matrix else told or "nothing about GPUs"
        raise InputError(
            f"this tells {found}, not which GPUs are joined",
            where=source,
            hint="give it beside the output of 'nvidia-smi topo -m'",
        )


def _told(status: dict[int, GpuStatus]) -> str:
    parts = []
    for number, gpu in list(status.items())[:16]:
        active = len(gpu.rates) or len(gpu.remotes)
        remote = len(set(gpu.remotes.values()))
        to = f" to {remote} devices" if remote else ""
        rates = sorted(set(gpu.rates.values()))
        at = f" at {' and '.join(rates[:4])} GB/s" if rates else ""
        down = f", {len(gpu.inactive)} inactive ({', '.join(map(str, gpu.inactive[:20]))})" if gpu.inactive else ""
        parts.append(f"GPU{number} ({gpu.name}): {active} active NVLinks{to}{at}{down}")
    return "; ".join(parts)

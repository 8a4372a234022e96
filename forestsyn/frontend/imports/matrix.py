"""Matrices of devices as terminals print them and people paste them: labels on top, a row for each device.

What is forgiven: blanks or tabs, tables of Markdown and quotes around them, a header over several lines, rows in any
order, cut rows, rows that continue on the next line, cells and labels that lost the blank between them, text before
and after. What is not: a cell of an unknown word, a self mark in the wrong column, two halves that disagree. Such a
matrix would be read wrongly, so it is refused.
"""

from __future__ import annotations

import re

import msgspec

from forestsyn.errors import InputError
from forestsyn.units import format_count

MAXIMUM_LABELS = 512

#: Words of `nvidia-smi topo`, of distance and of peer access; longer ones first, so that glued cells split.
_WORD = "NV[0-9]{1,3}|NODE|PIX|PXB|PHB|SYS|SOC|CNS|GNS|TNS|NS|OK|DR|U|X"
_CELL = re.compile(f"(?:{_WORD})", re.IGNORECASE)
_CELLS = re.compile(f"(?:{_WORD})+", re.IGNORECASE)
_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,60}[0-9][A-Za-z]{0,4}")
_GLUED = re.compile(r"(?:GPU|NIC|HCA|mlx[0-9]_)[0-9]+")
_GPU = re.compile(r"GPU[0-9]{1,5}")
_HEADER_WORD = re.compile(r"(?:CPU|NUMA|GPU|ID|Affinity|AffinityNUMA|AffinityGPU|ID\S*)", re.IGNORECASE)
_AFFINITY = re.compile(r"(?:N/A|[0-9][0-9,-]*|-)")
_FRAME = re.compile(r"^[\s>]*\|?[\s:|+-]*$")
_LEGEND = re.compile(r"\s*((?:NIC|HCA)[0-9]+)\s*[:=]\s*([A-Za-z][\w.-]*)\s*")


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """Cells by (row label, column label), in capitals; a cell that the text lacks is missing from the mapping."""

    labels: tuple[str, ...]
    cells: dict[tuple[str, str], str]
    missing_rows: tuple[str, ...]
    cpu_affinity: dict[str, str]
    numa_affinity: dict[str, str]
    aliases: dict[str, str]
    line: int
    wrapped_header: bool
    ragged: bool

    @property
    def gpus(self) -> tuple[str, ...]:
        """The labels of GPUs, by number."""
        return tuple(sorted((label for label in self.labels if _GPU.fullmatch(label)), key=_number))

    @property
    def others(self) -> tuple[str, ...]:
        """The labels of all else: NICs."""
        return tuple(label for label in self.labels if not _GPU.fullmatch(label))

    def between(self, one: str, other: str) -> str | None:
        """The word for two devices, from either half, or None where the text lacks both cells."""
        return self.cells.get((one, other)) or self.cells.get((other, one))


class _Row(msgspec.Struct):
    """A row while it is read."""

    label: str
    line: int
    cells: list[str]
    rest: list[str]


class _Draft(msgspec.Struct):
    """A matrix while it is read."""

    line: int
    labels: list[str]
    header_lines: int
    words: str
    rows: list[_Row]


def find_matrices(lines: list[str], *, source: str) -> list[Matrix]:
    """Every matrix in `lines`, in order. Raises InputError for one that cannot be trusted."""
    aliases = {match[1]: match[2] for line in lines if (match := _LEGEND.fullmatch(line)) is not None}
    return [_finish(draft, aliases, source) for draft in _drafts(lines, source) if draft.rows]


def _drafts(lines: list[str], source: str) -> list[_Draft]:
    drafts: list[_Draft] = []
    current: _Draft | None = None
    for number, line in enumerate(lines, start=1):
        if not line or line.lstrip().startswith("#") or _FRAME.match(line):
            continue
        tokens = _tokens(line)
        labels = _header_labels(tokens)
        if labels is not None and labels and _GPU.match(labels[0]) and (current is None or current.rows):
            current = _Draft(number, labels, 1, line, [])
            drafts.append(current)
        elif current is None:
            continue
        elif labels is not None and not current.rows:
            current.labels.extend(labels)
            current.header_lines += 1
            current.words += " " + line
        elif not _read_row(current, tokens, number, source):
            current = current if not current.rows or _may_continue(tokens) else None
        if current is not None and len(current.labels) > MAXIMUM_LABELS:
            raise InputError(f"the matrix has more than {MAXIMUM_LABELS} devices", where=f"{source}:{number}")
    return drafts


def _tokens(line: str) -> list[str]:
    bare = line.lstrip(" \t>").replace("|", " ").replace("*", " ").replace("`", " ")
    return bare.split()


def _header_labels(tokens: list[str]) -> list[str] | None:
    """The labels of a header line, or None when the line is something else."""
    labels: list[str] = []
    for position, token in enumerate(tokens):
        if _CELLS.fullmatch(token):
            return None
        if not _LABEL.fullmatch(token):
            words = tokens[position:]
            return labels if all(_HEADER_WORD.fullmatch(word) for word in words) else None
        labels.append(token)
    return labels


def _may_continue(tokens: list[str]) -> bool:
    return bool(tokens) and _LABEL.fullmatch(tokens[0].rstrip(":")) is not None and len(tokens) > 1


def _read_row(draft: _Draft, tokens: list[str], number: int, source: str) -> bool:
    """Take a line as a row, or as the rest of the row above. Returns False when it is neither."""
    label = tokens[0].rstrip(":")
    if label in _all_labels(draft.labels) and len(tokens) > 1:
        row = _Row(label, number, [], [])
        _read_cells(row, tokens[1:], source)
        draft.rows.append(row)
        return True
    if draft.rows and len(draft.rows[-1].cells) < len(draft.labels) and not draft.rows[-1].rest:
        if _CELLS.fullmatch(tokens[0]):
            _read_cells(draft.rows[-1], tokens, source)
            return True
        if all(_AFFINITY.fullmatch(token) for token in tokens):
            draft.rows[-1].rest.extend(tokens)
            return True
    return False


def _all_labels(labels: list[str]) -> set[str]:
    return {*labels, *(part for label in labels for part in _split_label(label))}


def _read_cells(row: _Row, tokens: list[str], source: str) -> None:
    for position, token in enumerate(tokens):
        if _CELLS.fullmatch(token):
            row.cells.extend(word.upper() for word in _CELL.findall(token))
        elif _AFFINITY.fullmatch(token) or not token.isalpha():
            row.rest = tokens[position:]
            return
        else:
            raise InputError(
                f"the row {row.label} has the word '{token[:20]}', which nvidia-smi does not print",
                where=f"{source}:{row.line}",
                hint="known: X, NV1 ..., PIX, PXB, PHB, NODE, SYS, SOC; another vendor's matrix is not read",
            )


def _finish(draft: _Draft, aliases: dict[str, str], source: str) -> Matrix:
    labels = _choose_labels(draft)
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"the column {twice} stands twice in the header", where=f"{source}:{draft.line}")
    cells: dict[tuple[str, str], str] = {}
    cpu: dict[str, str] = {}
    numa: dict[str, str] = {}
    seen: set[str] = set()
    for row in draft.rows:
        where = f"{source}:{row.line}"
        if row.label in seen:
            raise InputError(f"the row {row.label} is given twice", where=where, hint="give one matrix in a file")
        seen.add(row.label)
        _place_cells(row, labels, cells, where)
        _place_affinity(row, draft.words, cpu, numa)
    _check_halves(cells, draft.rows, source)
    return Matrix(
        labels=tuple(labels),
        cells=cells,
        missing_rows=tuple(label for label in labels if label not in seen),
        cpu_affinity=cpu,
        numa_affinity=numa,
        aliases=aliases,
        line=draft.line,
        wrapped_header=draft.header_lines > 1,
        ragged=any(len(row.cells) < len(labels) for row in draft.rows),
    )


def _choose_labels(draft: _Draft) -> list[str]:
    """The header as written, or with glued labels split where only that fits the rows."""
    split = [part for label in draft.labels for part in _split_label(label)]
    counts = [len(row.cells) for row in draft.rows]
    most = max(counts)
    return split if len(split) > len(draft.labels) and most > len(draft.labels) else draft.labels


def _split_label(label: str) -> list[str]:
    parts = _GLUED.findall(label)
    return parts if len(parts) > 1 and "".join(parts) == label else [label]


def _place_cells(row: _Row, labels: list[str], cells: dict[tuple[str, str], str], where: str) -> None:
    if row.label not in labels:
        raise InputError(f"the row {row.label} has no column", where=where)
    if len(row.cells) > len(labels):
        raise InputError(
            f"the row {row.label} has {format_count(len(row.cells), 'cell')}, "
            f"expected {len(labels)}, one for each column",
            where=where,
        )
    marks = [labels[place] for place, word in enumerate(row.cells) if word == "X"]
    place = labels.index(row.label)
    if marks != ([row.label] if place < len(row.cells) else []):
        found = f"under {', '.join(marks[:4])}" if marks else "missing"
        raise InputError(
            f"the self mark X of the row {row.label} is {found}, expected under {row.label}: a cell is lost or "
            "another row slipped in",
            where=where,
            hint="paste the matrix again, whole",
        )
    for label, word in zip(labels, row.cells, strict=False):
        if label != row.label:
            cells[row.label, label] = word


def _place_affinity(row: _Row, words: str, cpu: dict[str, str], numa: dict[str, str]) -> None:
    """CPU Affinity, NUMA Affinity: the header says which there are; GPU NUMA ID is not used."""
    values = list(row.rest)
    squeezed = re.sub(r"\s+", "", words).lower()
    if "cpuaffinity" in squeezed and values:
        value = values.pop(0)
        while value.endswith(",") and values:
            value += values.pop(0)
        if value != "N/A":
            cpu[row.label] = value
    if "numaaffinity" in squeezed and values and values[0] not in ("N/A", "-"):
        numa[row.label] = values[0]


def _check_halves(cells: dict[tuple[str, str], str], rows: list[_Row], source: str) -> None:
    lines = {row.label: row.line for row in rows}
    for (one, other), word in cells.items():
        back = cells.get((other, one), word)
        if back != word:
            raise InputError(
                f"{one} to {other} is {word} and {other} to {one} is {back}, expected the same",
                where=f"{source}:{lines[one]}",
                hint="the matrix cannot be trusted; print it again",
            )


def _number(label: str) -> tuple[int, str]:
    digits = re.findall(r"\d+", label)
    return (int(digits[-1]) if digits else 0, label)

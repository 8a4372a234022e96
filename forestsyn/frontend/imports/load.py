"""From names of files and answers to what they tell: what the command line and `load_topology` call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.document import parse_document
from forestsyn.frontend.imports.compose_plain import found_template, machine_template
from forestsyn.frontend.imports.compose_repeat import repeat_host
from forestsyn.frontend.imports.kinds import Found, HostTemplate, Options, require_answers
from forestsyn.frontend.imports.registry import (
    SourceText,
    is_fabric,
    is_machine,
    read_source,
    read_sources,
    recognize,
)
from forestsyn.frontend.imports.writing import plain_text

_BUILT_IN = ("rails", "switch")


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Answers, and files that go with the first: hosts (`FILE`, `MACHINE` or `PATTERN=FILE`), a fabric, helpers."""

    options: Options = Options()
    kind: str | None = None
    hosts: tuple[str, ...] = ()
    fabric: str | None = None
    beside: tuple[str, ...] = ()

    @property
    def is_given(self) -> bool:
        """Whether something is to be composed, so that T may even be a machine of the catalog."""
        return bool(self.hosts or self.fabric or self.beside or self.kind or self.options.hosts)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A complete native document, with its notes and guesses as sentences."""

    document: dict[str, Any]
    notes: tuple[str, ...]


def load_foreign(specs: Sequence[str], request: ImportRequest) -> Told | None:
    """The complete document of foreign files, or None when no reader knows the only one. Raises InputError."""
    if len(specs) == 1 and not request.is_given and recognize(read_source(Path(specs[0]))) is None:
        return None
    found = find_foreign(specs, request)
    require_answers(found, source=specs[0])
    return Told(document=found.document, notes=tuple(plain_text(found)))


def find_foreign(specs: Sequence[str], request: ImportRequest) -> Found:
    """What the files tell, with the questions that are left open. Raises InputError."""
    options = request.options
    machines = [spec for spec in specs if not _is_file(spec)]
    sources = [read_source(Path(spec)) for spec in specs if _is_file(spec)]
    beside = [read_source(Path(name)) for name in request.beside]
    if request.fabric is not None and request.fabric not in _BUILT_IN:
        sources.append(read_source(Path(request.fabric)))
    templates = tuple(_host(spec, options) for spec in (*request.hosts, *machines))
    options = msgspec.structs.replace(options, templates=templates)
    alone = _are_machines(sources, request.kind)
    if alone and (request.fabric is not None or options.hosts is not None):
        return _repeated(specs, sources, beside, request, options)
    if alone and templates:
        raise InputError(
            "hosts are given and no fabric to join them",
            where=specs[0],
            hint="give --fabric FILE, or --fabric rails with --hosts N",
        )
    return read_sources(sources, options, kind=request.kind, beside=beside)


def _repeated(
    specs: Sequence[str],
    sources: list[SourceText],
    beside: list[SourceText],
    request: ImportRequest,
    options: Options,
) -> Found:
    """N hosts of one kind under a plain fabric."""
    templates = list(options.templates)
    if sources:
        alone = msgspec.structs.replace(options, templates=())
        found = read_sources(sources, alone, kind=request.kind, beside=beside)
        require_answers(found, source=sources[0].source)
        templates.append(found_template(found, pattern="*", source=sources[0].source))
    if len(templates) != 1:
        raise InputError(f"{len(templates)} kinds of host are given, expected one", where="--fabric")
    return repeat_host(templates[0], request.fabric, options, source=specs[0])


def _are_machines(sources: Sequence[SourceText], kind: str | None) -> bool:
    """Whether no file describes a fabric or a whole network."""
    readers = [recognize(source, kind if place == 0 else None) for place, source in enumerate(sources)]
    return all(reader is not None and is_machine(reader) for reader in readers)


def _is_file(spec: str) -> bool:
    try:
        return "/" in spec or "." in spec or Path(spec).exists()
    except (OSError, ValueError):
        return True


def _host(spec: str, options: Options) -> HostTemplate:
    """A host template of `FILE`, `MACHINE`, `PATTERN=FILE` or `PATTERN=MACHINE`. Raises InputError."""
    pattern, equals, name = spec.partition("=")
    if not equals:
        pattern, name = "*", spec
    if not _is_file(name):
        return _catalog_host(name, pattern)
    source = read_source(Path(name))
    reader = recognize(source)
    if reader is None:
        return _native_host(source, pattern)
    if is_fabric(reader):
        raise InputError(f"this is a fabric ({reader.kind}), expected a file about one host", where=name)
    found = read_sources([source], msgspec.structs.replace(options, templates=()))
    require_answers(found, source=name)
    return found_template(found, pattern=pattern, source=name)


def _catalog_host(name: str, pattern: str) -> HostTemplate:
    from forestsyn.frontend.native import load_topology

    try:
        topology = load_topology(f"{name}:2")
    except InputError:
        topology = load_topology(name)
    return machine_template(name, topology, pattern=pattern)


def _native_host(source: SourceText, pattern: str) -> HostTemplate:
    value = parse_document(source.text, source=source.source).value
    if not isinstance(value, dict) or value.get("forestsyn") != 1:
        raise InputError("no reader recognizes this file", where=source.source, hint="give a file about one host")
    found = Found(kind="native", document={"name": Path(source.source).stem, **value})
    return found_template(found, pattern=pattern, source=source.source)

"""Hosts and fabrics: templates × counts, then links between all of them.

A template is expanded once and stamped for each host, so that the cost is linear in the number of devices.
"""

from __future__ import annotations

from typing import Any

import msgspec

from forestsyn.errors import InputError
from forestsyn.frontend.builder import TopologyBuilder
from forestsyn.frontend.catalog import machine_names, read_machine, unknown_machine
from forestsyn.frontend.decode import Path, decode
from forestsyn.frontend.document import Document, located
from forestsyn.frontend.expression import Variables, evaluate, evaluate_count
from forestsyn.frontend.linking import add_links
from forestsyn.frontend.pattern import MAXIMUM_NAMES, Namespace, check_name, expand_names
from forestsyn.frontend.schema import (
    Devices,
    Fabric,
    HostGroup,
    LinkEntry,
    SwitchDefaults,
    SwitchGroup,
    Template,
    TopologyFile,
)
from forestsyn.frontend.speeds import SpeedReader
from forestsyn.ir.topology import Vertex, VertexKind

_KINDS = (
    ("gpus", VertexKind.GPU),
    ("switches", VertexKind.SWITCH),
    ("nics", VertexKind.NIC),
    ("cpus", VertexKind.CPU),
)


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """One file while it is expanded: its text, its values, how to read numbers, the values of its parameters."""

    document: Document
    file: TopologyFile
    reader: SpeedReader
    variables: dict[str, int]


def add_box(context: Context, builder: TopologyBuilder) -> None:
    """Add the one host that the top level of the file describes; its devices keep their bare names."""
    file = context.file
    template = Template(gpus=file.gpus, switches=file.switches, nics=file.nics, cpus=file.cpus, links=file.links)
    plan = TopologyBuilder(builder.name)
    plan.switch_defaults = builder.switch_defaults
    _fill(plan, context, template, ())
    _stamp(plan, builder, host=builder.name, prefix="")


def add_hosts(context: Context, builder: TopologyBuilder) -> int:
    """Add all hosts of the file; how many."""
    plans: dict[str, TopologyBuilder] = {}
    total = 0
    for index, group in enumerate(context.file.hosts):
        path: Path = ("hosts", index)
        with located(context.document.where(*path)):
            if group.template not in context.file.templates:
                known = ", ".join(context.file.templates) or "none is defined"
                raise InputError(f"there is no template '{group.template}'", hint=f"templates: {known}")
            if group.template not in plans:
                plans[group.template] = _expand_template(context, group.template, builder.switch_defaults)
            plan = plans[group.template]
            names = _host_names(group, context.variables)
            builder.reserve(len(plan.vertices) * len(names), len(plan.links) * len(names))
            for name in names:
                _stamp(plan, builder, host=name, prefix=f"{name}/")
            total += len(names)
    return total


def add_fabrics(context: Context, builder: TopologyBuilder, host_count: int) -> None:
    """Add the switches and links of each fabric that the number of hosts calls for."""
    given = context.file.fabric
    listed: list[tuple[Path, Fabric]] = (
        [(("fabric", index), fabric) for index, fabric in enumerate(given)]
        if isinstance(given, list)
        else [(("fabric",), given)]
    )
    used: list[tuple[Path, Fabric]] = []
    for path, fabric in listed:
        with located(context.document.where(*path, "min_hosts")):
            if host_count >= evaluate(fabric.min_hosts, context.variables):
                used.append((path, fabric))
    for path, fabric in used:
        _add_devices(builder, context, fabric.switches, VertexKind.SWITCH, (*path, "switches"))
    namespace = Namespace(builder.names)
    for path, fabric in used:
        _add_link_entries(builder, context, fabric.links, (*path, "links"), namespace)


def _expand_template(context: Context, name: str, switch_defaults: SwitchDefaults) -> TopologyBuilder:
    path: Path = ("templates", name)
    with located(context.document.where(*path)):
        check_name(name, "template")
    template = decode(context.document, path, Template)
    plan = TopologyBuilder(name)
    plan.switch_defaults = switch_defaults
    if template.use is not None:
        with located(context.document.where(*path, "use")):
            _fill_from_machine(plan, context, template.use)
    _fill(plan, context, template, path)
    return plan


def _fill_from_machine(plan: TopologyBuilder, context: Context, machine: str) -> None:
    """Start a template from the hosts of a catalog machine."""
    if machine not in machine_names():
        raise unknown_machine(machine, machine_names())
    document = read_machine(machine)
    file = decode(document, (), TopologyFile)
    if not file.hosts:
        raise InputError(f"'{machine}' is not made of hosts, so no template can start from it")
    inner = Context(document=document, file=file, reader=context.reader, variables=dict(file.parameters))
    path: Path = ("templates", file.hosts[0].template)
    _fill(plan, inner, decode(document, path, Template), path)


def _fill(plan: TopologyBuilder, context: Context, template: Template, path: Path) -> None:
    for key, kind in _KINDS:
        _add_devices(plan, context, getattr(template, key), kind, (*path, key))
    _add_link_entries(plan, context, template.links, (*path, "links"), Namespace(plan.names))


def _add_devices(builder: TopologyBuilder, context: Context, devices: Devices, kind: VertexKind, path: Path) -> None:
    with located(context.document.where(*path)):
        for prefix, group in _groups(devices, kind, context, path):
            names = _device_names(prefix, group, context.variables)
            builder.reserve(len(names))
            defaults = builder.switch_defaults if kind is VertexKind.SWITCH else SwitchDefaults()
            for name in names:
                builder.add_vertex(
                    Vertex(
                        name=check_name(name, "device"),
                        kind=kind,
                        multicast=defaults.multicast if group.multicast is None else group.multicast,
                        reduce=defaults.reduce if group.reduce is None else group.reduce,
                    )
                )


def _groups(devices: Devices, kind: VertexKind, context: Context, path: Path) -> list[tuple[str, SwitchGroup]]:
    """Each group of devices as its name (or prefix) and its description."""
    if isinstance(devices, list):
        return [(name, SwitchGroup()) for name in devices]
    if not isinstance(devices, dict):
        return [(kind.value, SwitchGroup(count=devices))]
    groups = []
    for name, given in devices.items():
        group = SwitchGroup(count=given) if isinstance(given, int | str) else _group(context.document, (*path, name))
        if kind is not VertexKind.SWITCH and (group.multicast is not None or group.reduce is not None):
            raise InputError(f"'{name}' is no switch, so it cannot have multicast or reduce")
        groups.append((name, group))
    return groups


def _group(document: Document, path: Path) -> SwitchGroup:
    value: Any = document.value
    for step in path:
        value = value[step]
    return SwitchGroup() if value is None else decode(document, path, SwitchGroup)


def _device_names(prefix: str, group: SwitchGroup, variables: Variables) -> list[str]:
    if group.count is None:
        return expand_names(prefix, variables)
    check_name(prefix, "device")
    count = evaluate_count(group.count, variables, minimum=0, maximum=MAXIMUM_NAMES, what=f"the number of {prefix}")
    return [f"{prefix}{index}" for index in range(count)]


def _add_link_entries(
    builder: TopologyBuilder, context: Context, entries: list[LinkEntry], path: Path, namespace: Namespace
) -> None:
    for index, entry in enumerate(entries):
        with located(context.document.where(*path, index)):
            add_links(entry, namespace, context.reader, context.variables, builder.add_link)
            builder.reserve(0)


def _host_names(group: HostGroup, variables: Variables) -> list[str]:
    if group.names is not None:
        if group.count is not None or group.prefix is not None:
            raise InputError("hosts have 'names' and also 'count' or 'prefix', expected one way of naming them")
        listed = [group.names] if isinstance(group.names, str) else group.names
        names = [name for pattern in listed for name in expand_names(pattern, variables)]
    else:
        count = 1 if group.count is None else group.count
        number = evaluate_count(count, variables, minimum=1, maximum=MAXIMUM_NAMES, what="the number of hosts")
        prefix = check_name("n" if group.prefix is None else group.prefix, "host")
        names = [f"{prefix}{index}" for index in range(number)]
    for name in names:
        check_name(name, "host")
    return names


def _stamp(plan: TopologyBuilder, builder: TopologyBuilder, *, host: str, prefix: str) -> None:
    base = len(builder.vertices)
    for vertex in plan.vertices:
        builder.add_vertex(
            Vertex(
                name=prefix + vertex.name,
                kind=vertex.kind,
                host=host,
                multicast=vertex.multicast,
                reduce=vertex.reduce,
            )
        )
    for (tail, head), speed in plan.links.items():
        builder.add_link(base + tail, base + head, speed)

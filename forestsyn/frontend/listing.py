"""The catalog as a list."""

from __future__ import annotations

import msgspec

from forestsyn.frontend.catalog import machine_names, read_machine
from forestsyn.frontend.decode import decode
from forestsyn.frontend.native import load_topology
from forestsyn.frontend.schema import TopologyFile
from forestsyn.frontend.shaped import shape_names


class MachineInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A name that stands for a topology.

    parameter: what the numbers after ':' mean, e.g. ``N = 1``; '' when there are none. example: a complete name.
    ranks: how many the example has. sources: where its numbers come from.
    """

    name: str
    description: str
    parameter: str
    example: str
    ranks: int
    sources: tuple[str, ...]


def list_machines() -> tuple[MachineInfo, ...]:
    """All machines by name, then all shapes by name."""
    return (*(_machine(name) for name in machine_names()), *_shapes())


def _machine(name: str) -> MachineInfo:
    document = read_machine(name)
    file = decode(document, (), TopologyFile)
    return MachineInfo(
        name=name,
        description=file.title or name,
        parameter=" x ".join(f"{key} = {value}" for key, value in file.parameters.items()),
        example=name,
        ranks=load_topology(name).rank_count,
        sources=tuple(file.sources),
    )


def _shapes() -> tuple[MachineInfo, ...]:
    machines = []
    for shape in shape_names():
        example = f"{shape.name}:{'x'.join(map(str, shape.default))}"
        machines.append(
            MachineInfo(
                name=shape.name,
                description=f"shape: {shape.title}",
                parameter=shape.parameter,
                example=example,
                ranks=load_topology(example).rank_count,
                sources=(),
            )
        )
    return tuple(machines)

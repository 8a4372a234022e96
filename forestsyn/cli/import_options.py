"""Options that answer what a foreign file does not say; the same on `import` and on every verb that takes T."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from forestsyn.frontend.imports.load import ImportRequest

_META = "forestsyn.import"
#: option, name in `Options` (None: in `ImportRequest`), type, metavar, help.
_ANSWERS: tuple[tuple[str, str, Any, str, str], ...] = (
    ("--gpu", "gpu", str, "MODEL", "Model of the GPUs, such as a100; or one for each, a100,v100."),
    ("--pcie", "pcie", str, "GENxLANES", "PCIe link of the devices, such as gen4x16."),
    ("--nic", "nic", str, "SPEED", "Speed of the NICs, such as 200G."),
    ("--xgmi", "xgmi", int, "N", "xGMI links between two GPUs."),
    ("--socket", "socket", str, "NAME|SPEED", "Link between CPU sockets, such as upi-icelake or 16GB/s."),
    ("--rates", "rates", click.Choice(["spec", "nccl"]), "spec|nccl", "Column of the rate table.  [default: spec]"),
    ("--machine", "machine", str, "NAME", "Machine of the catalog that the file is about."),
    ("--link", "link", str, "SPEED", "Speed of links that have none in the file, such as 400G."),
    ("--oversubscription", "oversubscription", str, "K[,K...]", "Down over up bandwidth of switches, leaves first."),
    ("--hosts", "hosts", int, "N", "So many hosts of this kind."),
    ("--gpus-per-host", "gpus_per_host", int, "N", "GPUs of a host, where only a fabric is given."),
    ("--nics-per-host", "nics_per_host", int, "N", "NICs of a host, where the fabric does not list them."),
    ("--capacity-attr", "capacity_attribute", str, "NAME", "Attribute of a graph's edges that is the bandwidth."),
    ("--unit", "unit", str, "UNIT", "Unit of that attribute, such as Gb/s."),
    ("--gpu-attr", "gpu_attribute", str, "NAME[=VALUE]|all", "Nodes of a graph that are GPUs."),
)
_FILES: tuple[tuple[str, str, bool, str, str], ...] = (
    ("--host", "hosts", True, "[PATTERN=]FILE|MACHINE", "What the hosts of a fabric hold; repeat for several kinds."),
    ("--fabric", "fabric", False, "FILE|rails|switch", "What joins the hosts."),
    ("--beside", "beside", True, "FILE", "Another text about the same machine, such as nvidia-smi nvlink -s."),
    ("--kind", "kind", False, "KIND", "Read the file as this kind, whatever it looks like."),
)


def import_options(command: Callable[..., Any], *, hidden: bool = False) -> Callable[..., Any]:
    """Add the options; what was given is found by `import_request`, not among the arguments of `command`."""
    for name, field, multiple, metavar, text in reversed(_FILES):
        command = _option(name, f"file:{field}", str, metavar, text, hidden, multiple=multiple)(command)
    switches = (
        ("--all-nics", "all_nics", "Keep storage and management NICs."),
        ("--nvswitch/--no-nvswitch", "nvswitch", "Whether NVLinks lead to a switch."),
    )
    for name, field, text in switches:
        command = _option(name, field, bool, None, text, hidden, is_flag=True)(command)
    for name, field, kind, metavar, text in reversed(_ANSWERS):
        command = _option(name, field, kind, metavar, text, hidden)(command)
    return command


def import_request() -> ImportRequest | None:
    """What the options of the running command say, or None when they say nothing."""
    context = click.get_current_context(silent=True)
    given: dict[str, Any] = {} if context is None else context.meta.get(_META, {})
    if not given:
        return None
    from forestsyn.frontend.imports.kinds import Options
    from forestsyn.frontend.imports.load import ImportRequest

    files = {name.removeprefix("file:"): value for name, value in given.items() if name.startswith("file:")}
    answers = {name: value for name, value in given.items() if not name.startswith("file:")}
    return ImportRequest(options=Options(**answers), **files)


def _option(
    name: str, field: str, kind: Any, metavar: str | None, text: str, hidden: bool, **more: Any
) -> Callable[..., Any]:
    def remember(context: click.Context, _option: click.Parameter, value: Any) -> None:
        if value is not None and value != ():
            context.meta.setdefault(_META, {})[field] = value

    parameter = "import_" + field.replace(":", "_")
    if more.get("is_flag"):
        more["default"] = None
    return click.option(
        name,
        parameter,
        type=kind,
        metavar=metavar,
        hidden=hidden,
        help=text,
        expose_value=False,
        callback=remember,
        **more,
    )

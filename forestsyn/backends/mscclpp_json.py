"""Plans as MSCCL++ JSON, one operation a line; the loader (mscclpp 0.9.0, execution_plan.cc) takes any layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from forestsyn.ir.plan import Plan, PlanBlock, PlanGpu


def emit_mscclpp_json(plan: Plan) -> str:
    """The text of `plan`; ends with a newline."""
    head = _attributes(plan, without="gpus")
    lines = [f'{{{head}, "gpus": [']
    for number, gpu in enumerate(plan.gpus):
        lines.extend(_gpu(gpu, last=number == len(plan.gpus) - 1))
    return "\n".join([*lines, "]}\n"])


def _gpu(gpu: PlanGpu, *, last: bool) -> Iterator[str]:
    yield f' {{{_attributes(gpu, without="threadblocks")}, "threadblocks": ['
    for number, block in enumerate(gpu.blocks):
        yield from _block(block, last=number == len(gpu.blocks) - 1)
    yield f" ]}}{_comma(last)}"


def _block(block: PlanBlock, *, last: bool) -> Iterator[str]:
    yield f'  {{{_attributes(block, without="ops")}, "ops": ['
    yield from _lines([_spaced(step) for step in block.steps], indent="   ")
    yield f"  ]}}{_comma(last)}"


def _lines(texts: Sequence[str], *, indent: str) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"{indent}{text}{_comma(number == len(texts) - 1)}"


def _attributes(part: Plan | PlanGpu | PlanBlock, *, without: str) -> str:
    """The attributes of `part` but the long one, as the inside of an object."""
    fields = [item for item in msgspec.structs.fields(part) if item.encode_name != without]
    return ", ".join(f'"{item.encode_name}": {_spaced(getattr(part, item.name))}' for item in fields)


def _spaced(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _comma(last: bool) -> str:
    return "" if last else ","

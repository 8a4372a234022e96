"""Reads <gpu>, <tb> and <step>: the program of one rank."""

from __future__ import annotations

from functools import lru_cache

from forestsyn.frontend.msccl_fields import Fields
from forestsyn.frontend.msccl_findings import DIALECTS, EXECUTORS, MSCCL, FindingLog
from forestsyn.frontend.msccl_tree import Element
from forestsyn.ir.program import Buffer, Dependency, Location, Operation, RankProgram, Step, Threadblock

_STEP_ATTRIBUTES = ("s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep")
_OPERATIONS = {operation.value: operation for operation in Operation}
_BUFFERS = {buffer.value: buffer for buffer in Buffer}
#: Step numbers that the loaders let pass: 0 <= s < limit.
_STEP_NUMBERS = {MSCCL: 256, EXECUTORS[0]: 64, EXECUTORS[1]: 64}


def read_rank(fields: Fields, log: FindingLog) -> RankProgram:
    """The program in a <gpu> element; its threadblocks are put in the order of their ids."""
    numbered: dict[int, Threadblock] = {}
    for element in fields.element.children:
        own = Fields(element, log)
        own.require("id", "send", "recv", "chan")
        number = own.integer("id")
        if number in numbered:
            own.unreadable("threadblock-id", f"duplicate threadblock id {number} in rank {fields.text('id')}")
        numbered[number] = _read_threadblock(own, log)
    if sorted(numbered) != list(range(len(numbered))):
        missing = next(number for number in range(len(numbered) + 1) if number not in numbered)
        message = f"rank {fields.text('id')}: threadblock ids must be 0, 1, 2, …; id {missing} is missing"
        fields.unreadable("threadblock-id", message)
        return RankProgram(input_chunks=0, output_chunks=0, scratch_chunks=0, threadblocks=())
    return RankProgram(
        input_chunks=fields.integer("i_chunks"),
        output_chunks=fields.integer("o_chunks"),
        scratch_chunks=fields.integer("s_chunks"),
        threadblocks=tuple(numbered[number] for number in range(len(numbered))),
    )


def _read_threadblock(fields: Fields, log: FindingLog) -> Threadblock:
    steps = [_read_step(element, log) for element in fields.element.children]
    _check_numbers(fields, log)
    return Threadblock(
        send_peer=fields.integer("send"),
        receive_peer=fields.integer("recv"),
        channel=fields.integer("chan"),
        steps=tuple(step for step in steps if step is not None),
    )


def _read_step(element: Element, log: FindingLog) -> Step | None:
    """The step, or None where `log` has been told that it is unreadable."""
    fields = Fields(element, log)
    attributes = element.attributes
    try:
        operation = _OPERATIONS[attributes["type"]]
        source, destination = _BUFFERS[attributes["srcbuf"]], _BUFFERS[attributes["dstbuf"]]
    except KeyError:
        _report_words(fields)
        return None
    if not attributes.keys() >= _STEP_NAMES:
        fields.require(*_STEP_ATTRIBUTES)
        return None
    waited = fields.integer("depid")
    flagged = attributes["hasdep"]
    if flagged not in ("0", "1"):
        value = fields.integer("hasdep")
        if value not in (0, 1):
            fields.refuse("switch", f"hasdep is {value}, expected 0 or 1", DIALECTS)
        flagged = "1" if value else "0"
    return Step(
        operation=operation,
        source=_location(source, fields.integer("srcoff")),
        destination=_location(destination, fields.integer("dstoff")),
        count=fields.integer("cnt"),
        depends_on=Dependency(threadblock=waited, step=fields.integer("deps")) if waited >= 0 else None,
        flagged=flagged == "1",
    )


_STEP_NAMES = frozenset(_STEP_ATTRIBUTES)


@lru_cache(maxsize=4096)
def _location(buffer: Buffer, offset: int) -> Location:
    return Location(buffer=buffer, offset=offset)


def _report_words(fields: Fields) -> None:
    fields.require(*_STEP_ATTRIBUTES)
    word = fields.text("type")
    if word == "ra":
        fields.refuse("operation", "the step type 'ra' is not supported", EXECUTORS)
        fields.misbehave("operation", "the interpreter leaves the kernel on a step of type 'ra'", (MSCCL,))
        fields.give_up()
    elif fields.has("type") and word not in _OPERATIONS:
        fields.unreadable("operation", f"step type '{word[:40]}', expected one of {', '.join(_OPERATIONS)}")
    for side in ("srcbuf", "dstbuf"):
        word = fields.text(side)
        if fields.has(side) and word not in _BUFFERS:
            fields.unreadable("buffer", f"{side} is '{word[:40]}', expected one of {', '.join(_BUFFERS)}")


def _check_numbers(fields: Fields, log: FindingLog) -> None:
    """The runtimes run steps in document order and only check the range of `s`; other orders mislead."""
    previous = -1
    for position, element in enumerate(fields.element.children):
        text = element.attributes.get("s", "")
        if text == str(position):
            previous = position
            continue
        number = Fields(element, log).integer("s")
        where = f"step {position} of threadblock {fields.text('id')} has s={number}"
        refusing = tuple(dialect for dialect in DIALECTS if not 0 <= number < _STEP_NUMBERS[dialect])
        if refusing and position < _STEP_NUMBERS[refusing[0]]:
            log.refuse("step-number", f"{where}, which is out of range", element.offset, refusing)
        elif number <= previous:
            message = f"{where} after s={previous}; the runtimes run and count steps in document order"
            log.misbehave("step-number", message, element.offset)
        else:
            message = f"{where}; the runtimes number steps by their place and so does this check"
            log.note("step-number", message, element.offset)
        previous = number

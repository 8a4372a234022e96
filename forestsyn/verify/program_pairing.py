"""Both ends of every connection: the k-th send meets the k-th receive, and both must move as many chunks."""

from __future__ import annotations

from forestsyn.units import format_count
from forestsyn.verify.program_machine import Connection, Machine
from forestsyn.verify.program_report import ProgramLog


def check_pairing(machine: Machine, log: ProgramLog) -> None:
    """Reports connections whose ends do not fit together."""
    for connection in machine.connections:
        sends = _counts(machine, connection.sender, sending=True)
        receives = _counts(machine, connection.receiver, sending=False)
        if sends or receives:
            _check_connection(machine, connection, sends, receives, log)


def _counts(machine: Machine, thread: int, *, sending: bool) -> list[tuple[int, int]]:
    """(action, chunks) of every send or receive of a thread, in order."""
    if thread < 0:
        return []
    return [
        (index, action.count)
        for index, action in enumerate(machine.threads[thread].actions)
        if (action.shape.sends if sending else action.shape.receives)
    ]


def _check_connection(
    machine: Machine,
    connection: Connection,
    sends: list[tuple[int, int]],
    receives: list[tuple[int, int]],
    log: ProgramLog,
) -> None:
    for position, ((sending, sent), (receiving, received)) in enumerate(zip(sends, receives, strict=False)):
        if sent != received:
            place = machine.place(connection.sender, sending)
            partner = machine.place(connection.receiver, receiving)
            chunks = format_count(sent, "chunk")
            message = f"message {position} of {connection} has {chunks}, but {partner} receives {received}"
            log.violate("pairing", message, place, blocks=True)
            return
    if len(sends) == len(receives):
        return
    surplus, owner, word = (
        (sends[len(receives)], connection.sender, "send")
        if len(sends) > len(receives)
        else (receives[len(sends)], connection.receiver, "receive")
    )
    other = connection.receiver if word == "send" else connection.sender
    reason = "" if other >= 0 else "; the other rank has no threadblock on it"
    counts = f"{format_count(len(sends), 'send')} and {format_count(len(receives), 'receive')}"
    message = f"this {word} has no partner: {connection} has {counts}{reason}"
    log.violate("pairing", message, machine.place(owner, surplus[0]), blocks=True)

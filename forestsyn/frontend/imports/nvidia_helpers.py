"""What accompanies a matrix of `nvidia-smi topo -m`: model names, NVLink status, remote devices, peer access."""

from __future__ import annotations

import re

import msgspec

from forestsyn.frontend.imports.matrix import Matrix

_GPU_LINE = re.compile(r"\s*GPU\s+([0-9]{1,5})\s*:(.+)")
_RATE = re.compile(r"\s*Link\s+([0-9]{1,3})\s*:\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*GB/s")
_INACTIVE = re.compile(r"\s*Link\s+([0-9]{1,3})\s*:\s*<?inactive>?", re.IGNORECASE)
_REMOTE = re.compile(
    r"\s*Link\s+([0-9]{1,3})\s*:\s*Remote Device\s+([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]).*"
)

_NOT_PEERS = frozenset(("CNS", "GNS", "TNS", "NS", "DR", "U"))


class GpuStatus(msgspec.Struct, kw_only=True):
    """One GPU of `nvidia-smi -L` or `nvlink`: the rates of its active links, the inactive ones, remote devices."""

    name: str
    rates: dict[int, str]
    inactive: list[int]
    remotes: dict[int, str]


def read_status(lines: list[str]) -> dict[int, GpuStatus]:
    """What is said of each GPU, by its number. Later lines add to earlier ones."""
    found: dict[int, GpuStatus] = {}
    current: GpuStatus | None = None
    for line in lines:
        if (match := _GPU_LINE.fullmatch(line)) is not None:
            current = found.setdefault(
                int(match[1]), GpuStatus(name=_name(match[2]), rates={}, inactive=[], remotes={})
            )
        elif current is None:
            continue
        elif (match := _RATE.fullmatch(line)) is not None:
            current.rates[int(match[1])] = match[2]
        elif (match := _INACTIVE.fullmatch(line)) is not None:
            current.inactive.append(int(match[1]))
        elif (match := _REMOTE.fullmatch(line)) is not None:
            current.remotes[int(match[1])] = match[2].lower()
    return found


def _name(text: str) -> str:
    return text.partition("(UUID")[0].strip()[:120]


def inactive_sentences(status: dict[int, GpuStatus]) -> list[str]:
    """A sentence for each GPU with links that are down."""
    sentences = []
    for number, gpu in status.items():
        if gpu.inactive:
            total = len(gpu.rates) + len(gpu.inactive)
            listed = ", ".join(str(link) for link in gpu.inactive[:20])
            sentences.append(f"GPU{number} ({gpu.name}): {len(gpu.inactive)} of {total} NVLinks inactive: {listed}")
    return sentences


def remotes_are_switches(status: dict[int, GpuStatus]) -> bool | None:
    """True when two GPUs link to the same devices, as only switches are; None where that cannot be told."""
    sets = [frozenset(gpu.remotes.values()) for gpu in status.values() if gpu.remotes]
    if len(sets) < 2:
        return None
    if all(found == sets[0] for found in sets):
        return True
    return None if any(sets[0] & found for found in sets[1:]) else False


def is_peer_matrix(matrix: Matrix) -> bool:
    """Whether the matrix is of `nvidia-smi topo -p2p`."""
    words = set(matrix.cells.values())
    return bool(words) and words <= {"OK", *_NOT_PEERS}


def not_peers(matrices: list[Matrix]) -> dict[frozenset[str], str]:
    """The pairs of GPUs that may not reach each other's memory, with the word that says so."""
    return {frozenset(pair): word for matrix in matrices for pair, word in matrix.cells.items() if word in _NOT_PEERS}

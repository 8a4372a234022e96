"""What a user can do when a program exceeds a limit of its target."""

from __future__ import annotations

from forestsyn.ir.target import TARGETS, Target

_FEWER_TREES = "use fewer trees (--trees auto, or a smaller --trees K)"
#: The limit that decides, with its noun: connections take more channels once the steps of a threadblock are used up.
_DECISIVE = {
    "steps_max": ("steps_max", "steps in a threadblock"),
    "channels_max": ("steps_max", "steps in a threadblock"),
    "threadblocks_max": ("threadblocks_max", "threadblocks"),
}
_FURTHER = {
    "threadblocks_max": ", or fewer peers (--max-peers N)",
    "peers_per_channel_max": ", or fewer peers (--max-peers N)",
    "nodes_max": ", or fewer ranks",
}


def remedy(target: Target, limit: str) -> str:
    """A hint for whoever exceeds `limit` of `target`; another target is named only where it allows more."""
    hint = _FEWER_TREES + _FURTHER.get(limit, "")
    if limit not in _DECISIVE:
        return f"{hint}; all targets have this limit" if _is_common(target, limit) else hint
    decisive, noun = _DECISIVE[limit]
    most = max(TARGETS.values(), key=lambda other: getattr(other, decisive))
    if getattr(most, decisive) <= getattr(target, decisive):
        return hint
    return f"{hint}, or --target {most.name} where that runs: it allows {getattr(most, decisive)} {noun}"


def _is_common(target: Target, limit: str) -> bool:
    return all(getattr(other, limit) == getattr(target, limit) for other in TARGETS.values())

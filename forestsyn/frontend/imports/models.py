"""GPU models: how people and tools spell them, how many NVLinks or xGMI links they have, and which rate is theirs.

Link counts as NVIDIA's and AMD's data sheets give them; the rates stand in `forestsyn.frontend.rates`.
"""

from __future__ import annotations

import re

import msgspec

from forestsyn.errors import InputError


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """`links` of the kind `link` (nvlink, xgmi, or None), whose rate the keys `rate` of a link entry name.

    `pairs` tells how many links join two GPUs of a fully linked box, where the part fixes it.
    """

    name: str
    link: str | None = None
    links: int = 0
    rate: tuple[tuple[str, str | int], ...] = ()
    pairs: int | None = None


def _nvidia(name: str, links: int, *, gen: int | None = None, part: str | None = None) -> Model:
    rate: tuple[tuple[str, str | int], ...] = (("gen", gen),) if gen is not None else (("part", part or name),)
    return Model(name=name, link="nvlink", links=links, rate=rate)


def _amd(name: str, links: int, pairs: int | None) -> Model:
    return Model(name=name, link="xgmi", links=links, rate=(("part", name),), pairs=pairs)


_MODELS = (
    _nvidia("p100", 4),
    _nvidia("v100", 6),
    _nvidia("2080ti", 2),
    _nvidia("titan-rtx", 2, part="2080ti"),
    _nvidia("a100", 12),
    _nvidia("a800", 8),
    _nvidia("a30", 4, gen=3),
    _nvidia("3090", 4),
    _nvidia("a6000", 4),
    _nvidia("a40", 4),
    _nvidia("h100", 18),
    _nvidia("h100-nvl", 12, part="h100"),
    _nvidia("h200", 18),
    _nvidia("h20", 18, gen=4),
    _nvidia("h800", 8),
    _nvidia("gh200", 18),
    _nvidia("b200", 18),
    _nvidia("gb200", 18),
    _nvidia("b300", 18),
    _nvidia("gb300", 18, gen=5),
    _amd("mi50", 2, 1),
    _amd("mi100", 3, 1),
    _amd("mi210", 3, 1),
    _amd("mi250", 7, None),
    _amd("mi250x", 7, None),
    _amd("mi300x", 7, 1),
    _amd("mi325x", 7, 1),
    _amd("mi350x", 7, 1),
    _amd("mi355x", 7, 1),
)
#: Parts without any GPU-to-GPU link.
_PLAIN = (
    *("k80", "p4", "p40", "t4", "l4", "l40", "l40s", "a10", "a16", "a2", "a4000", "a5000", "3060", "3070", "3080"),
    *("4060", "4070", "4080", "4090", "5070", "5080", "5090", "1080ti", "mi25"),
)
_BY_NAME = {model.name: model for model in (*_MODELS, *(Model(name=name) for name in _PLAIN))}

#: The first that matches the spelling of a tool wins, so the longer names stand first.
_SPELLINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"\bGB300\b", "gb300"),
        (r"\bGB200\b", "gb200"),
        (r"\bGH200\b", "gh200"),
        (r"\bB300\b", "b300"),
        (r"\bB200\b", "b200"),
        (r"\bH200\b", "h200"),
        (r"\bH800\b", "h800"),
        (r"\bH20\b", "h20"),
        (r"\bH100[ -](NVL|PCIe)\b", "h100-nvl"),
        (r"\bH100\b", "h100"),
        (r"\bA800\b", "a800"),
        (r"\bA100\b", "a100"),
        (r"\bA30\b", "a30"),
        (r"\bV100S?\b", "v100"),
        (r"\bP100\b", "p100"),
        (r"\bA6000\b", "a6000"),
        (r"\bA40\b", "a40"),
        (r"\b2080 ?Ti\b", "2080ti"),
        (r"\bTITAN RTX\b", "titan-rtx"),
        (r"\b1080 ?Ti\b", "1080ti"),
        (r"\bMI ?(\d{2,3}[AX]?)\b", "mi"),
        (r"\b(L40S|L40|L4|T4|A10G?|A16|A2|K80|P40|P4|A4000|A5000)\b", ""),
        (r"\b(3060|3070|3080|3090|4060|4070|4080|4090|5070|5080|5090)\b", ""),
    )
)


def find_model(text: str, *, where: str = "--gpu") -> Model:
    """The model that `text` (an option, or a name that a tool printed) means. Raises InputError."""
    model = guess_model(text)
    if model is None:
        raise InputError(
            f"no GPU model '{text[:40]}' is known", where=where, hint=f"known: {', '.join(model_names())}"
        )
    return model


def guess_model(text: str) -> Model | None:
    """The model that `text` means, or None."""
    plain = re.sub(r"[\s_]+", "-", text.strip().lower())
    if plain in _BY_NAME:
        return _BY_NAME[plain]
    for pattern, name in _SPELLINGS:
        match = pattern.search(text[:200])
        if match is not None:
            found = name if name not in ("", "mi") else name + match[1].lower()
            found = {"a10g": "a10", "mi60": "mi50", "mi250a": "mi250"}.get(found, found)
            return _BY_NAME.get(found)
    return None


def model_names(link: str | None = None, least: int = 0) -> tuple[str, ...]:
    """The names of all models, or of those with at least `least` links of the kind `link`."""
    return tuple(
        model.name for model in _BY_NAME.values() if link is None or (model.link == link and model.links >= least)
    )

"""Colours by role, light and dark, and the styles of pictures made from them.

Lines and texts keep a contrast of 3:1 and 4.5:1 to what they lie on. On the page a role is a CSS variable; a picture
in a file of its own has the light colours written in.
"""

from __future__ import annotations

import re
from importlib.resources import files

#: (light, dark) by role.
COLOURS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#12161c"),
    "panel": ("#f6f8fa", "#1a2029"),
    "ink": ("#1b2430", "#e6ebf2"),
    "muted": ("#566273", "#9aa7b8"),
    "edge": ("#d3dae3", "#323c4a"),
    "accent": ("#1f5fbf", "#7db2ff"),
    "host": ("#f3f6fa", "#1b222c"),
    "host-edge": ("#c3ccd8", "#3b4656"),
    "gpu": ("#dbe7f8", "#25406a"),
    "gpu-edge": ("#3f6fb5", "#7ba7e8"),
    "nic": ("#d9efe8", "#1d4a42"),
    "nic-edge": ("#2b8570", "#5fc2aa"),
    "switch": ("#e7e3f4", "#3a3260"),
    "switch-edge": ("#6f5bb0", "#a896e6"),
    "cpu": ("#efe6da", "#4a3d2a"),
    "cpu-edge": ("#94703c", "#cfa768"),
    "peer": ("#6c83a6", "#6f86a8"),
    "network": ("#2b8570", "#4fae98"),
    "pcie": ("#a98450", "#b0905f"),
    "hot": ("#c8321f", "#ff7d66"),
    "inside": ("#ffd9b8", "#6b3a17"),
    "inside-host": ("#fff1e3", "#33241a"),
    "inside-edge": ("#c76a12", "#f0a052"),
    "good": ("#1d7a46", "#5fcf8f"),
    "series-tuned": ("#1f5fbf", "#7db2ff"),
    "series-bound": ("#1b2430", "#e6ebf2"),
    "series-ring": ("#c8321f", "#ff7d66"),
    "series-1": ("#2b8570", "#5fc2aa"),
    "series-2": ("#8a5bd0", "#b897f2"),
    "series-3": ("#b7791f", "#e0b04f"),
    "series-4": ("#a8327e", "#ee86c4"),
    "series-5": ("#4d7f1c", "#9fcc5a"),
    "series-6": ("#0e7c93", "#56c4d8"),
    "series-7": ("#7a6652", "#bfa88f"),
    "series-8": ("#5a6b80", "#a3b3c6"),
}

_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


def picture_styles() -> str:
    """The styles of a picture in a file of its own."""
    return literal(asset("picture.css"))


def literal(text: str) -> str:
    """`text` with the light colours in place of variables."""
    return _VARIABLE.sub(lambda match: COLOURS[match[1]][0], text)


def variables(dark: bool) -> str:
    """The declarations of all roles for one theme."""
    return " ".join(f"--{role}: {pair[dark]};" for role, pair in COLOURS.items())


def asset(name: str) -> str:
    """The text of a file that comes with this package."""
    return (files("forestsyn.show") / "assets" / name).read_text(encoding="utf-8")

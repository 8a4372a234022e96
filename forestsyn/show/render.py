"""Rasters and charts, by vl-convert; and the page's template, by Jinja. Both come with the optional extra `show`."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from forestsyn.errors import InputError
from forestsyn.show.palette import literal

if TYPE_CHECKING:
    import jinja2

#: Of Vega-Lite; the bundle for the page and the charts of files are of one version.
_VERSION = "6.4"
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def svg_png(svg: str, *, scale: float = 2.0) -> bytes:
    """A PNG of an SVG text, `scale` pixels for each of its own. Raises InputError without the extra `show`."""
    png: bytes = _require("vl_convert").svg_to_png(svg, scale=scale)
    return png


def chart_svg(spec: dict[str, Any], *, width: int = 760) -> str:
    """An SVG text of a chart in light colours. Raises InputError without the extra `show`."""
    fixed = json.loads(literal(json.dumps(spec)))
    fixed |= {"width": width, "background": "#ffffff"}
    svg: str = _require("vl_convert").vegalite_to_svg(fixed, vl_version=_VERSION)
    return svg + "\n"


@cache
def chart_script() -> str:
    """JavaScript that defines `window.vegaEmbed`, with all it needs. Raises InputError without the extra `show`."""
    script: str = _require("vl_convert").javascript_bundle(_SNIPPET, vl_version=_VERSION)
    return script.replace("</script", "<\\/script")


def template_environment() -> jinja2.Environment:
    """Jinja that escapes everything it is given. Raises InputError without the extra `show`."""
    jinja = _require("jinja2")
    environment: jinja2.Environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment


def require_extra() -> None:
    """Raise InputError early, before long work, where the extra `show` is missing."""
    _require("vl_convert")
    _require("jinja2")


def _require(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(
            f"the Python package '{module.replace('_', '-')}' is needed for PNG and HTML and is not installed",
            hint="run: pip install 'forestsyn[show]'",
        ) from error

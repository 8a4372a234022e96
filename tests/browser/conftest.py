"""A real headless Chromium, without a profile and without any network use of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api")

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sync_api.Browser]:
    """Skips where there is none; `scripts/install-browser` brings it."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("no chromium here; scripts/install-browser installs it")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=list(_FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of several kinds of network, by a short name."""
    from forestsyn.ir.collective import Collective
    from forestsyn.pipeline.show import draw_page, show
    from tests.browser.samples import SAMPLES, TUNED, sample_topology

    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for name in SAMPLES:
        topology = sample_topology(name)
        result = show(
            topology, Collective.ALLREDUCE, program=name == "hosts", tuned=TUNED if name != "many" else None
        )
        found[name] = folder / f"{name}.html"
        found[name].write_text(draw_page(result.view), encoding="utf-8")
    return found

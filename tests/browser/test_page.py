"""The page in a browser: quiet, offline, complete, in both themes and on two screens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.samples import CURVES, SAMPLES

pytest.importorskip("playwright.sync_api")

LAPTOP, PHONE = (1366, 768), (390, 844)


@contextmanager
def opened(chromium: Any, path: Path, screen: tuple[int, int] = LAPTOP, scheme: str = "light") -> Iterator[Any]:
    """The page, ready; fails on leaving when it said or asked for anything."""
    context = chromium.new_context(
        viewport={"width": screen[0], "height": screen[1]}, color_scheme=scheme, offline=True
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("requestfailed", lambda request: said.append(f"failed: {request.url}"))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if page.locator("#charts").count():
        page.wait_for_function("document.documentElement.dataset.charts === 'shown'")
    yield page
    context.close()
    assert not said
    assert asked == [path.as_uri()]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("screen", [LAPTOP, PHONE])
def test_the_page_is_quiet_and_fits(
    chromium: Any, pages: dict[str, Path], name: str, screen: tuple[int, int]
) -> None:
    with opened(chromium, pages[name], screen) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= screen[0]
        assert page.title() != "broken"
        assert page.locator(".figure").count() >= 6
        assert page.locator("svg.drawing .device").count() > 10


def test_the_charts_are_there(chromium: Any, pages: dict[str, Path]) -> None:
    with opened(chromium, pages["hosts"]) as page:
        for chart in ("#chart-time", "#chart-rate"):
            lines = page.locator(f"{chart} svg .mark-line path")
            assert lines.count() == len(CURVES)
            assert all(len(path) > 40 for path in lines.evaluate_all("ls => ls.map(l => l.getAttribute('d'))"))
            assert page.locator(f"{chart} svg .mark-text text").count() > 8
        assert page.locator(".legend li").count() == len(CURVES)


def test_a_size_tells_every_curve(chromium: Any, pages: dict[str, Path]) -> None:
    with opened(chromium, pages["hosts"]) as page:
        chart = page.locator("#chart-rate svg")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)
        page.mouse.move(box["x"] + box["width"] * 0.61, box["y"] + box["height"] * 0.5)
        page.wait_for_selector("#vg-tooltip-element.visible")
        text = page.locator("#vg-tooltip-element").inner_text()
        assert "undefined" not in text
        assert text.count("GB/s") == len(CURVES)
        assert page.locator("#vg-tooltip-element img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(chromium: Any, pages: dict[str, Path], scheme: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    axis = "getComputedStyle(document.querySelector('#chart-time .mark-text text')).fill"
    with opened(chromium, pages["hosts"], scheme=scheme) as page:
        before = page.evaluate(ground), page.evaluate(axis)
        assert before[0] == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 22, 28)")
        button = page.get_by_role("button", name="Switch between light and dark")
        button.focus()
        page.keyboard.press("Enter")
        after = page.evaluate(ground), page.evaluate(axis)
        assert after[0] == ("rgb(18, 22, 28)" if scheme == "light" else "rgb(255, 255, 255)")
        assert after[1] != before[1]
        assert button.get_attribute("aria-pressed") == ("true" if scheme == "light" else "false")
        page.keyboard.press("Enter")
        assert (page.evaluate(ground), page.evaluate(axis)) == before


def test_everything_has_a_name_for_readers(chromium: Any, pages: dict[str, Path]) -> None:
    with opened(chromium, pages["torus"]) as page:
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll('[role=img], [role=group], section, nav, button')]
                .filter(e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).length"""
        )
        lost = page.evaluate(
            """() => [...document.querySelectorAll('[aria-labelledby]')]
                .flatMap(e => e.getAttribute('aria-labelledby').split(' '))
                .filter(id => !document.getElementById(id)).length"""
        )
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        assert (unnamed, lost) == (0, 0)
        assert len(ids) == len(set(ids))
        assert page.locator("h1").count() == 1


def test_hostile_names_are_shown_as_they_are(chromium: Any, pages: dict[str, Path]) -> None:
    with opened(chromium, pages["hostile"]) as page:
        assert page.locator("h1").inner_text().startswith("</script><script>document.title")
        assert page.locator("img").count() == 0


def test_a_page_without_curves_says_why(chromium: Any, pages: dict[str, Path]) -> None:
    with opened(chromium, pages["many"]) as page:
        assert "No times were predicted" in page.locator("#times").inner_text()
        assert page.locator(".chart").count() == 0


def test_print_is_light_and_whole(chromium: Any, pages: dict[str, Path]) -> None:
    with opened(chromium, pages["hosts"], scheme="dark") as page:
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not page.locator("button").is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")

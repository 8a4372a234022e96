"""House rules that a reader would otherwise have to check by eye."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "forestsyn").rglob("*.py"))
TEXTS = [
    path
    for folder in ("forestsyn", "tests", "docs", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".yaml", ".toml", ".txt"}
] + [ROOT / "README.md", ROOT / "pyproject.toml"]

MAXIMUM_LINES = 400
ABSOLUTE_PATH = re.compile(r"(?<![\w.~/])/(?:work|tmp|home|root)/\w")
UNFINISHED = re.compile(r"\b(?:TO" + "DO|FIX" + "ME|X" + "XX)\\b")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_what_is_public_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    missing = [
        name
        for name, node in _public(tree.body)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not ast.get_docstring(node)
    ]
    assert not missing, f"no docstring: {', '.join(missing)}"
    assert not tree.body or ast.get_docstring(tree), "the module has no docstring"


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAXIMUM_LINES


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_nothing_prints_outside_the_command_line(path: Path) -> None:
    if (ROOT / "forestsyn" / "cli") in path.parents:
        return
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    prints = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert not prints, f"prints on lines {prints}"


@pytest.mark.parametrize("path", TEXTS, ids=_name)
def test_no_unfinished_business_and_no_path_of_one_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    found = [match.group() for pattern in (ABSOLUTE_PATH, UNFINISHED) for match in pattern.finditer(text)]
    assert not found, f"found {found}"

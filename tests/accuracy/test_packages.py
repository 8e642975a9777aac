"""The packages of `accuracy` import from those above them alone: the list is in the architecture page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/torchferry/accuracy"
NAME = "torchferry.accuracy"


def _order(language: str) -> dict[str, int]:
    """Part -> the number of its line."""
    page = (ROOT / f"docs/{language}/how-it-works/architecture.md").read_text("utf-8")
    block = page.partition("tests/accuracy/test_packages.py")[2].partition("```text\n")[2].partition("```")[0]
    return {part: number for number, line in enumerate(block.splitlines()) for part in line.split()}


ORDER = _order("en")
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_imports(module: str) -> None:
    own = module.partition("/")[0].removesuffix(".py")
    tree = ast.parse((PACKAGE / module).read_text("utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = [f"{node.module}.{alias.name}" for node in froms for alias in node.names]
    imported = {match[1] for name in names if (match := re.match(rf"{re.escape(NAME)}\.(\w+)", name))} - {own}
    assert {part for part in imported if own in ORDER and ORDER[part] >= ORDER[own]} == set()


def test_both_pages_have_the_same_list() -> None:
    assert _order("zh") == ORDER


def test_everything_has_a_place() -> None:
    parts = {module.partition("/")[0].removesuffix(".py") for module in MODULES}
    assert parts - {"__init__"} == set(ORDER)

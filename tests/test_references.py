"""Modules that are named in texts exist: in docs, in code that tests hand to other processes, in tables, in programs that
no test imports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "docs", "tools", "benchmarks", "examples")
_NAMED = re.compile(r"\btorchferry((?:\.[a-z_]\w*)+)(?::(\w+)(?!\w*\{))?")
_IMPORTED = re.compile(r"\bfrom (torchferry(?:\.\w+)*) import ([\w, ]+)")
# Of packages that the architecture page and tests make up.
_MADE_UP = {"torchferry.survey", "torchferry.nothing", "torchferry.transport"}


def _texts() -> Iterator[Path]:
    yield from (
        ROOT / name for name in ("README.md", "README.zh.md", "CONTRIBUTING.md", "setup.py", "pyproject.toml")
    )
    for folder in FOLDERS:
        for suffix in ("py", "md", "toml"):
            yield from (ROOT / folder).rglob(f"*.{suffix}")


def _has(dotted: str, name: str = "") -> bool:
    """Whether a module of this name exists, or one that speaks of the rest of it."""
    place, rest = ROOT / "src", dotted.split(".")
    while rest and (place / rest[0]).is_dir():
        place /= rest.pop(0)
    if rest and (place / f"{rest[0]}.py").is_file():
        file = place / f"{rest.pop(0)}.py"
    else:
        file = place / "__init__.py"
    if name and not rest and ((place / name).is_dir() or (place / f"{name}.py").is_file()):
        return True
    wanted = [*rest[:1], *([name] if name else [])]
    if not wanted:
        return True
    if place == ROOT / "src/torchferry" and len(rest) > 1:  # a package that is not there
        return False
    text = file.read_text("utf-8") if file.is_file() else ""
    return all(re.search(rf"\b{word}\b", text) for word in wanted if not word.startswith("__"))


def _wrong(text: str) -> set[str]:
    found = {
        match.group()
        for match in _NAMED.finditer(text)
        if not _has(f"torchferry{match[1]}", match[2] or "") and not match.group().startswith(tuple(_MADE_UP))
    }
    for match in _IMPORTED.finditer(text):
        names = [each.partition(" as ")[0].strip() for each in match[2].split(",")]
        found |= {f"{match[1]}: {name}" for name in names if name and not _has(match[1], name)}
    return found


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("from torchferry.units import size", set()),
        ("from torchferry.sim import build", set()),
        ("torchferry.report.page:to_csv", set()),
        ("torchferry.accuracy.watch.watching", set()),
        ("from torchferry.units import magnitude", {"torchferry.units: magnitude"}),
        ("torchferry.prove.compare", {"torchferry.prove.compare"}),
        ("torchferry.report.page:to_pdf", {"torchferry.report.page:to_pdf"}),
    ],
)
def test_what_is_wrong(text: str, wrong: set[str]) -> None:
    assert _wrong(text) == wrong


def test_every_name_of_a_module_is_one() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): _wrong(path.read_text("utf-8"))
        for path in _texts()
        if path != Path(__file__)
    }
    assert {path: names for path, names in found.items() if names} == {}

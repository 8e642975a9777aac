"""The lines of keys, in files that hold everything the formats allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torchferry.conversion.custom.json_format import json_lines
from torchferry.conversion.custom.model import KeyPath
from torchferry.conversion.custom.toml_format import toml_lines
from torchferry.vendors.schema import toml_module

ROOT = Path(__file__).resolve().parents[3]
TOML_FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("src/torchferry/vendors", "examples")
    for path in (ROOT / folder).rglob("*.toml")
)

HOSTILE = '''\
# [[rule]]
"a key" = "# no comment" # a comment = 1
dotted.key = 1
'single' = \'\'\'
[table]
x = 1\'\'\'
many = [
  # a comment, with ] and }
  "]", { b = 1, "c.d" = [ { e = 2 } ] },
]
text = """
last = "\\\\""" \\\\\\"
"""
[table]
x = 1
[table.inner]
y = {z = 1}
[[rows]]
n = 1
[[rows.deep]]
m = 1
[[rows.deep]]
m = 2
[[rows]]
n = 2
[[rows.deep]]
m = 3
'''


def paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """All keys of a parsed file."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from paths(inner, (*path, key))
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from paths(inner, (*path, number))


def check(text: str, data: Any, lines: dict[KeyPath, int]) -> None:
    rows = text.split("\n")
    for path in paths(data):
        if path in lines:
            assert str(path[-1]) in rows[lines[path] - 1], path
        else:
            # A table that only its own keys make: [a.b] makes a, and a.b = 1 does.
            assert any(known[: len(path)] == path for known in lines), path


@pytest.mark.parametrize("name", TOML_FILES)
def test_toml_files(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    check(text, toml_module().loads(text), toml_lines(text))


def test_everything_that_toml_allows() -> None:
    text = HOSTILE.replace("\\\\", "\\")
    lines = toml_lines(text)
    check(text, toml_module().loads(text), lines)
    assert lines[("rows", 0, "deep", 1, "m")] == 23
    assert lines[("rows", 1, "deep", 0, "m")] == 27
    assert lines[("many", 1, "c.d", 0, "e")] == 9
    assert lines[("table", "x")] == 15


def test_everything_that_json_allows() -> None:
    data = {"a{": ["]", {"b": '\\"}', "c": None}, [1, {"d": []}]], "e": {"f": {}}, "g\n": -1.5e3, "": True}
    for indent in (None, 1):
        text = json.dumps(data, indent=indent)
        lines, twice = json_lines(text)
        assert not twice
        rows = text.split("\n")
        for path in paths(data):
            assert json.dumps(path[-1]) in rows[lines[path] - 1]

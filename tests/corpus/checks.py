"""What must be true of every converted file: it can still be read, and nothing changed that no hunk shows."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from torchferry.source.decode import decode

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def assert_compiles(path: Path) -> None:
    """Python takes the module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def assert_loads(before: Path, after: Path) -> None:
    """What could be read before can be read now."""
    read = _READERS.get(after.suffix)
    if read is None:
        return
    try:
        read(before.read_text("utf-8"))
    except (ValueError, yaml.YAMLError):
        return
    read(after.read_text("utf-8"))


def _read_yaml(text: str) -> object:
    return list(yaml.compose_all(text, Loader=yaml.SafeLoader))


_READERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".ipynb": json.loads,
    ".yaml": _read_yaml,
    ".yml": _read_yaml,
}


def assert_only_hunks_changed(
    before: bytes, after: bytes, hunks: list[dict[str, Any]], is_notebook: bool = False
) -> None:
    """The bytes of every line, its ending included, are the same but for the lines that a hunk shows as changed."""
    decoded = decode(before)
    assert after.startswith(decoded.bom)
    old = _LINE.findall(decoded.text)
    new = _LINE.findall(after[len(decoded.bom) :].decode(decoded.encoding))
    kept = list(_kept_lines(hunks, len(old), len(new)))
    before_lines = [old[number - 1] for number, _ in kept]
    after_lines = [new[number - 1] for _, number in kept]
    if is_notebook:  # the last line of a cell gets a line ending in its string where another one follows now
        before_lines, after_lines = map(_strings_of_cells, (before_lines, after_lines))
    assert before_lines == after_lines


def _strings_of_cells(lines: list[str]) -> list[str]:
    return [re.sub(r'(?:\\n)?",?(\r?\n)\Z', r'"\1', line) for line in lines]


def _kept_lines(hunks: list[dict[str, Any]], old_count: int, new_count: int) -> Iterator[tuple[int, int]]:
    """The numbers, before and after, of the lines that the hunks say are the same."""
    old, new = 1, 1
    for hunk in hunks:
        while old < hunk["old_start"]:
            yield old, new
            old, new = old + 1, new + 1
        assert (old, new) == (hunk["old_start"], hunk["new_start"])
        for tag, _, _ in hunk["lines"]:
            if tag == " " and old <= old_count:
                yield old, new
            old, new = old + (tag != "+"), new + (tag != "-")
    while old <= old_count:
        yield old, new
        old, new = old + 1, new + 1
    assert new >= new_count + 1

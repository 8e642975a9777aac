"""The line on which each value of a JSON text stands; the text is known to be valid."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from torchferry.convert.custom.problems import KeyPath

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


@dataclass
class _Around:
    """An object or list that the scan is in."""

    path: KeyPath
    is_object: bool
    key: str | int = 0
    wants_key: bool = False

    @property
    def inner(self) -> KeyPath:
        return (*self.path, self.key)


def json_lines(text: str) -> tuple[dict[KeyPath, int], list[tuple[KeyPath, int]]]:
    """Path -> line, of an object's entries the line of the key; and the keys that stand twice in one object."""
    lines: dict[KeyPath, int] = {(): 1}
    twice: list[tuple[KeyPath, int]] = []
    around: list[_Around] = []
    line = 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        here = around[-1] if around else None
        if token == "\n":
            line += 1
        elif token in ("}", "]"):
            around.pop()
        elif token == ",":
            assert here is not None
            here.wants_key = here.is_object
            here.key = here.key + 1 if isinstance(here.key, int) else here.key
        elif here is not None and here.wants_key:
            here.key, here.wants_key = json.loads(token), False
            if here.inner in lines:
                twice.append((here.inner, line))
            lines[here.inner] = line
        elif token != ":":
            path = here.inner if here is not None else ()
            lines.setdefault(path, line)
            if token in ("{", "["):
                around.append(_Around(path, token == "{", 0, token == "{"))
    return lines, twice

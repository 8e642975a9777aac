"""The line on which each key of a TOML text stands; the text is known to be valid."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.convert.custom.problems import KeyPath

_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'|"
    r"#[^\n]*|\n|[{}\[\]=,.]|[^\s{}\[\]=,.#\"']+",
    re.DOTALL,
)

Token = tuple[str, int]  # text, line


def toml_lines(text: str) -> dict[KeyPath, int]:
    """Path -> line of the key, or of the [[header]] of a table."""
    return _Scan(text).lines


class _Scan:
    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {(): 1}
        self.counts: dict[KeyPath, int] = {}  # of each array of tables
        self.table: KeyPath = ()
        for statement in _statements(text):
            if statement[0][0] == "[":
                self._header(statement)
            else:
                self._entry(statement, self.table)

    def _header(self, tokens: list[Token]) -> None:
        is_array = tokens[1][0] == "["
        path: KeyPath = ()
        names = _key(tokens)
        for number, name in enumerate(names, 1):
            path = (*path, name)
            if number == len(names) and is_array:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path = (*path, self.counts[path])
        self.table = path
        self.lines.setdefault(path, tokens[0][1])

    def _entry(self, tokens: list[Token], table: KeyPath) -> None:
        """`key = value`; the keys of inline tables in the value, too."""
        equals = next((number for number, token in enumerate(tokens) if token[0] == "="), len(tokens))
        path = (*table, *_key(tokens[:equals]))
        self.lines[path] = tokens[0][1]
        self._value(tokens[equals + 1 :], path)

    def _value(self, tokens: list[Token], path: KeyPath) -> None:
        if not tokens or tokens[0][0] not in ("{", "["):
            return
        for number, part in enumerate(_parts(tokens[1:])):
            if tokens[0][0] == "{":
                self._entry(part, path)
            else:
                inner = (*path, number)
                self.lines[inner] = part[0][1]
                self._value(part, inner)


def _statements(text: str) -> Iterator[list[Token]]:
    """The headers and entries of the file, each as its tokens without comments."""
    line, depth = 1, 0
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "\n" and depth == 0 and tokens:
            yield tokens
            tokens = []
        elif token != "\n" and not token.startswith("#"):
            depth += (token in ("[", "{")) - (token in ("]", "}"))
            tokens.append((token, line))
        line += token.count("\n")
    if tokens:
        yield tokens


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The entries of a list or inline table, up to its end."""
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if depth < 0 or (token[0] == "," and depth == 0):
            if part:
                yield part
            part = []
            if depth < 0:
                return
        else:
            part.append(token)


def _key(tokens: list[Token]) -> list[str]:
    """The names of a dotted key; in quotes, without their escapes."""
    return [text.strip("\"'") for text, _ in tokens if text not in ("[", "]", ".")]

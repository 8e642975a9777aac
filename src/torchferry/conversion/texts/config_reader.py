"""Configurations taken apart into keys and values, with the position of each: JSON, TOML, INI."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from torchferry.vendors.schema import toml_module


class UnreadableConfigError(ValueError):
    """The text is not what its name says, or is written in a way that is not read here."""


@dataclass(frozen=True)
class ConfigEntry:
    """A key or a value: [start, end) without quotes."""

    names: tuple[str, ...]  # the keys above it, the nearest last
    start: int
    end: int
    value: str
    is_key: bool = False
    is_plain: bool = False  # written without quotes
    is_part: bool = False  # one line of a value of several lines


@dataclass
class ConfigContents:
    """What a configuration holds."""

    entries: list[ConfigEntry] = field(default_factory=list)
    comments: list[tuple[int, int]] = field(default_factory=list)


class FlowReader:
    """Reads values with brackets, braces and quotes: all of JSON, values of TOML, flow style of YAML."""

    def __init__(self, chars: str, contents: ConfigContents, assign: str, comment: str) -> None:
        self.chars = chars
        self.contents = contents
        self.assign = assign  # what stands between a key and its value
        self.comment = comment  # what begins a comment, "" if there are none

    def value(self, position: int, names: tuple[str, ...]) -> int:
        """Read one value; answers with the position behind it."""
        position = self.blank(position)
        char = self.chars[position : position + 1]
        if char == "{":
            return self._mapping(position + 1, names)
        if char == "[":
            return self._sequence(position + 1, names)
        if char in ('"', "'"):
            return self.quoted(position, names)
        return self._plain(position, names)

    def blank(self, position: int) -> int:
        """Skip blanks, line ends and comments."""
        chars = self.chars
        while position < len(chars):
            if chars[position] in " \t\r\n":
                position += 1
            elif self.comment and chars[position] == self.comment:
                if self.assign == ":" and position and chars[position - 1] not in " \t\r\n":
                    break
                stop = chars.find("\n", position)
                stop = len(chars) if stop < 0 else stop
                self.contents.comments.append((position, stop))
                position = stop
            else:
                break
        return position

    def _mapping(self, position: int, names: tuple[str, ...]) -> int:
        while True:
            position = self._next(position)
            if self.chars[position] == "}":
                return position + 1
            if self.chars[position] == ",":
                position += 1
                continue
            key, position = self.key(position, names)
            position = self._next(position)
            if self.chars[position] == self.assign:
                position = self.value(position + 1, (*names, *key))
            elif self.chars[position] not in ",}":
                raise UnreadableConfigError("a key without a value")

    def _sequence(self, position: int, names: tuple[str, ...]) -> int:
        while True:
            position = self._next(position)
            if self.chars[position] == "]":
                return position + 1
            position = position + 1 if self.chars[position] == "," else self.value(position, names)

    def _next(self, position: int) -> int:
        position = self.blank(position)
        if position >= len(self.chars):
            raise UnreadableConfigError("the text ends within brackets")
        return position

    def key(self, position: int, names: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """Read a key; in TOML it may have several parts."""
        parts: list[str] = []
        while True:
            start, end, after = self._key_span(position)
            entry = ConfigEntry((*names, *parts), start, end, self.chars[start:end], is_key=True)
            self.contents.entries.append(entry)
            parts.append(entry.value)
            if self.assign != "=" or self.chars[after : after + 1] != ".":
                return tuple(parts), after
            position = after + 1

    def _key_span(self, position: int) -> tuple[int, int, int]:
        if self.chars[position] in "\"'":
            end = self.closing(position)
            return position + 1, end, end + 1
        pattern = (
            r"[A-Za-z0-9_-]+"
            if self.assign == "="
            else r"(?:[^,\[\]{}:\s#]|:(?=\S)|[ \t]+(?=[^,\[\]{}:\s#]))+"
        )
        match = re.compile(pattern).match(self.chars, position)
        if match is None:
            raise UnreadableConfigError("no key where one should be")
        return match.start(), match.end(), match.end()

    def quoted(self, position: int, names: tuple[str, ...]) -> int:
        """Read a quoted text."""
        mark = self.chars[position] * 3
        if self.assign == "=" and self.chars.startswith(mark, position):
            stop = self.chars.find(mark, position + 3)
            if stop < 0:
                raise UnreadableConfigError("a text that does not end")
            return stop + 3
        end = self.closing(position)
        entry = ConfigEntry(names, position + 1, end, self.chars[position + 1 : end])
        self.contents.entries.append(entry)
        return end + 1

    def closing(self, position: int) -> int:
        """Where the quote is that ends a text."""
        quote = self.chars[position]
        pattern = r"'[^']*'" if self.assign == "=" else r"'(?:[^']|'')*'"
        if quote == '"':
            pattern = r"\"(?:[^\"\\]|\\.)*\""
        match = re.compile(pattern, re.DOTALL).match(self.chars, position)
        if match is None:
            raise UnreadableConfigError("a text that does not end")
        return match.end() - 1

    def _plain(self, position: int, names: tuple[str, ...]) -> int:
        stop = (
            r"[^,\]}\r\n#]+" if self.assign == "=" else r"(?:[^,\[\]{}\r\n:#]|:(?![ \t\r\n,\]}])|(?<=\S)#)+"
        )
        match = re.compile(stop).match(self.chars, position)
        if match is None:
            raise UnreadableConfigError("no value where one should be")
        value = match.group().rstrip()
        end = match.start() + len(value)
        if self.chars[match.end() : match.end() + 1] == ":" and self.assign == ":":  # [one: 1, two: 2]
            self.contents.entries.append(ConfigEntry(names, match.start(), end, value, is_key=True))
            return self.value(match.end() + 1, (*names, value))
        self.contents.entries.append(ConfigEntry(names, match.start(), end, value, is_plain=True))
        return end


def read_json(chars: str) -> ConfigContents:
    """All of a JSON text."""
    contents = ConfigContents()
    try:
        json.loads(chars)
        reader = FlowReader(chars, contents, ":", "")
        reader.value(0, ())
    except (ValueError, RecursionError) as error:
        raise UnreadableConfigError(str(error)) from None
    return contents


def read_toml(chars: str) -> ConfigContents:
    """All of a TOML text."""
    contents = ConfigContents()
    reader = FlowReader(chars, contents, "=", "#")
    try:
        toml_module().loads(chars.encode("latin-1").decode("utf-8").replace("\r\n", "\n"))
    except ValueError as error:
        raise UnreadableConfigError(str(error)) from None
    table: tuple[str, ...] = ()
    position = reader.blank(0)
    while position < len(chars):
        if chars[position] == "[":
            header = re.compile(r"\[+([^\r\n]*?)\]+").match(chars, position)
            if header is None:
                raise UnreadableConfigError("a table without an end")
            table = tuple(part.strip(" \t\"'") for part in header.group(1).split("."))
            position = header.end()
        else:
            key, position = reader.key(position, table)
            position = reader.value(reader.blank(position) + 1, (*table, *key))
        position = reader.blank(position)
    return contents


_INI_PAIR = re.compile(r"([^\s=:#;\[][^=:\r\n]*?)[ \t]*[=:][ \t]*([^\r\n]*)")
_INI_COMMENT = re.compile(r"[ \t]+[#;]")


def read_ini(chars: str) -> ConfigContents:
    """All of an INI text. A line that is indented continues the value above."""
    contents = ConfigContents()
    section = ""
    names: tuple[str, ...] = ()
    for line in re.finditer(r"[^\n]+", chars):
        text = line.group().rstrip("\r")
        stripped = text.strip()
        if stripped.startswith(("#", ";")):
            contents.comments.append(line.span())
        elif stripped.startswith("[") and text[0] not in " \t":
            section, names = stripped.strip("[]"), ()
        elif text[:1] in (" ", "\t"):
            if stripped:
                start = line.start() + text.index(stripped)
                contents.entries.append(
                    ConfigEntry(names, start, start + len(stripped), stripped, is_part=True)
                )
        elif match := _INI_PAIR.match(chars, line.start(), line.start() + len(text)):
            names = (section, match.group(1)) if section else (match.group(1),)
            contents.entries.append(
                ConfigEntry(names[:-1], match.start(1), match.end(1), match.group(1), is_key=True)
            )
            contents.entries.append(_ini_value(match, names))
    # The first line of a value that goes on is a part of it as well.
    entries: list[ConfigEntry] = []
    for entry in contents.entries:
        if entry.is_part and entries and not entries[-1].is_part:
            entries[-1] = replace(entries[-1], is_plain=False, is_part=True)
        entries.append(entry)
    contents.entries = entries
    return contents


def _ini_value(match: re.Match[str], names: tuple[str, ...]) -> ConfigEntry:
    comment = _INI_COMMENT.search(match.group(2))
    value = match.group(2)[: comment.start()] if comment else match.group(2).rstrip()
    start = match.start(2)
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return ConfigEntry(names, start + 1, start + len(value) - 1, value[1:-1])
    return ConfigEntry(names, start, start + len(value), value, is_plain=True)


# YAML taken apart into keys and values, with the position of each.
#
# A reader of positions, not a parser of YAML: it knows block and flow style, quotes, comments,
# anchors, tags, texts of several lines and several documents. What it does not know (keys marked by
# `?`, templates around lines) it refuses.

_PROPERTY = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]*)+")
_PLAIN_KEY = re.compile(
    r"(?:[^\s#:,\[\]{}\"'&*!|>%@`?-]|[-?:](?=\S))(?:[^\s:#]|:(?=\S)|(?<=\S)#|[ \t]+(?=[^\s:#]))*[ \t]*:(?=[ \t\r\n]|\Z)"
)
_BLOCK = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\n]*)?\r?(?:\n|\Z)")
_TEMPLATE = re.compile(
    r"^[ \t]*(?:\{%|\{\{-?[ \t]*(?:if|range|end|with|else|include|define|toYaml)\b)", re.MULTILINE
)


class YamlReader:
    """Reads a text line by line; `stack` holds the keys that are open, with their columns."""

    def __init__(self, chars: str) -> None:
        self.chars = chars
        self.contents = ConfigContents()
        self.stack: list[tuple[int, str]] = []
        self.flow = FlowReader(chars, self.contents, ":", "#")

    def read(self) -> ConfigContents:
        if _TEMPLATE.search(self.chars):
            raise UnreadableConfigError("a template")
        position = 0
        while position < len(self.chars):
            after = self._line(position)
            if after <= position:
                raise UnreadableConfigError("a line that is not understood")
            position = after
        return self.contents

    def _line(self, start: int) -> int:
        stop = self._line_end(start)
        text = self.chars[start:stop]
        column = len(text) - len(text.lstrip(" "))
        rest = text[column:].strip()
        if not rest:
            return stop
        if rest.startswith("#"):
            self.contents.comments.append((start + column, stop))
            return stop
        if column == 0 and re.match(r"(?:---|\.\.\.)(?:\s|\Z)", text):
            self.stack = []
            return self._node(start + 3, -1)
        if column == 0 and text.startswith("%"):
            return stop
        if text[column] == "\t":
            raise UnreadableConfigError("a tab in the indentation")
        return self._content(start, start + column, column - 1)

    def _line_end(self, position: int) -> int:
        stop = self.chars.find("\n", position)
        return len(self.chars) if stop < 0 else stop + 1

    def _content(self, line: int, position: int, parent: int) -> int:
        """An item of a list, a key with its value, or a value; `parent` is the column of what it belongs to."""
        chars, column = self.chars, position - line
        if re.match(r"-(?:\s|\Z)", chars[position : position + 2]):
            self.stack = [item for item in self.stack if item[0] <= column]
            inner = self._skip_blanks(position + 1)
            if self._is_end(inner):
                return self._rest(inner)
            return self._content(line, inner, column)
        if re.match(r"\?(?:\s|\Z)", chars[position : position + 2]):
            raise UnreadableConfigError("a key marked by a question mark")
        found = self._key(position)
        if found is None:
            inner = self._skip_properties(position)
            if inner != position and not self._is_end(inner) and self._key(inner) is not None:
                raise UnreadableConfigError("an anchor before a key")
            return self._node(position, parent)
        start, end, after = found
        self.stack = [item for item in self.stack if item[0] < column]
        name = chars[start:end]
        self.contents.entries.append(ConfigEntry(self._names(), start, end, name, is_key=True))
        self.stack.append((column, name))
        return self._node(after, column)

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.stack)

    def _key(self, position: int) -> tuple[int, int, int] | None:
        """Start, end and the position behind the colon of a key; None if there is none."""
        char = self.chars[position]
        if char in "\"'":
            end = self.flow.closing(position)
            after = self._skip_blanks(end + 1)
            if "\n" in self.chars[position:end] or not re.match(r":(?:\s|\Z)", self.chars[after : after + 2]):
                return None
            return position + 1, end, after + 1
        match = _PLAIN_KEY.match(self.chars, position)
        if match is None:
            return None
        return position, position + len(match.group()[:-1].rstrip()), match.end()

    def _skip_blanks(self, position: int) -> int:
        while self.chars[position : position + 1] in (" ", "\t"):
            position += 1
        return position

    def _skip_properties(self, position: int) -> int:
        match = _PROPERTY.match(self.chars, position)
        return match.end() if match else position

    def _is_end(self, position: int) -> bool:
        """Whether nothing but a comment is left on the line."""
        return self.chars[position : position + 1] in ("", "\n", "\r", "#")

    def _rest(self, position: int) -> int:
        position = self._skip_blanks(position)
        stop = self._line_end(position)
        left = self.chars[position:stop]
        if left.startswith("#"):
            self.contents.comments.append((position, stop))
        elif left.strip():
            raise UnreadableConfigError("something behind a value")
        return stop

    def _node(self, position: int, parent: int) -> int:
        """The value that begins here; answers with the position of a line."""
        chars = self.chars
        position = self._skip_properties(self._skip_blanks(position))
        if self._is_end(position):
            return self._rest(position)
        if _BLOCK.match(chars, position):
            return self._deeper_lines(self._line_end(position), parent)
        char = chars[position]
        if char in "\"'":
            return self._rest(self.flow.quoted(position, self._names()))
        if char in "[{" and not chars.startswith("{{", position):
            return self._rest(self.flow.value(position, self._names()))
        return self._plain(position, parent)

    def _plain(self, position: int, parent: int) -> int:
        stop = self._line_end(position)
        text = self.chars[position:stop]
        comment = re.search(r"[ \t]#", text)
        value = (text[: comment.start()] if comment else text).rstrip()
        end = position + len(value)
        after = stop
        if comment:
            self.contents.comments.append((position + comment.start(), stop))
        else:
            after = self._deeper_lines(stop, parent, ends_at_comment=True)
        if value and not value.startswith("*"):
            entry = ConfigEntry(self._names(), position, end, value, is_plain=True, is_part=after != stop)
            self.contents.entries.append(entry)
        return after

    def _deeper_lines(self, position: int, parent: int, ends_at_comment: bool = False) -> int:
        """Skip the lines that belong to a text of several lines: blank, or deeper than its owner."""
        end = position
        while position < len(self.chars):
            stop = self._line_end(position)
            text = self.chars[position:stop]
            if text.strip():
                if len(text) - len(text.lstrip(" ")) <= parent:
                    break
                if ends_at_comment and text.lstrip(" \t").startswith("#"):
                    break
                end = stop
            position = stop
        return end


def read_yaml(chars: str) -> ConfigContents:
    """All of a YAML text."""
    try:
        return YamlReader(chars).read()
    except RecursionError:
        raise UnreadableConfigError("brackets within brackets, too deep") from None

"""YAML taken apart into keys and values, with the position of each.

A reader of positions, not a parser of YAML: it knows block and flow style, quotes, comments, anchors, tags, texts of
several lines and several documents. What it does not know (keys marked by `?`, templates around lines) it refuses.
"""

from __future__ import annotations

import re

from torchferry.convert.texts.config_reader import Contents, Entry, FlowReader, UnreadableConfigError

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
        self.contents = Contents()
        self.stack: list[tuple[int, str]] = []
        self.flow = FlowReader(chars, self.contents, ":", "#")

    def read(self) -> Contents:
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
        """The position behind the end of the line."""
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
        self.contents.entries.append(Entry(self._names(), start, end, name, is_key=True))
        self.stack.append((column, name))
        return self._node(after, column)

    def _names(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.stack)

    def _key(self, position: int) -> tuple[int, int, int] | None:
        """Start, end and the position behind the colon of a key; None if there is none."""
        char = self.chars[position]
        if char in "\"'":
            end = self._closing(position)
            after = self._skip_blanks(end + 1)
            if "\n" in self.chars[position:end] or not re.match(r":(?:\s|\Z)", self.chars[after : after + 2]):
                return None
            return position + 1, end, after + 1
        match = _PLAIN_KEY.match(self.chars, position)
        if match is None:
            return None
        return position, position + len(match.group()[:-1].rstrip()), match.end()

    def _closing(self, position: int) -> int:
        pattern = r"\"(?:[^\"\\]|\\.)*\"" if self.chars[position] == '"' else r"'(?:[^']|'')*'"
        match = re.compile(pattern, re.DOTALL).match(self.chars, position)
        if match is None:
            raise UnreadableConfigError("a text that does not end")
        return match.end() - 1

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
        """Skip what is left of a line."""
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
            entry = Entry(self._names(), position, end, value, is_plain=True, is_part=after != stop)
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


def read_yaml(chars: str) -> Contents:
    """All of a YAML text."""
    try:
        return YamlReader(chars).read()
    except RecursionError:
        raise UnreadableConfigError("brackets within brackets, too deep") from None

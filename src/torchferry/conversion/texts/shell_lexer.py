"""Shell text taken apart into commands and words, with the position of each; what it can't read it skips."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_BLANK = " \t\r"
_OPERATORS = ";&|()\n"
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([\w.!-]+))")
_REFERENCE = re.compile(r"\$(?:\{[#!]?)?([A-Za-z_][A-Za-z0-9_]*)")
_DEEPEST = 50  # commands within commands: nobody writes more than a few
_REDIRECTION = re.compile(r"\d*(?:>>|>\||[<>]&|&>>?|<>|<<<|[<>])")


@dataclass
class Word:
    """One word as it is written: [start, end) with its quotes."""

    start: int
    end: int
    text: str
    value: str  # without quotes; what stands for something else is kept as it is written
    pieces: tuple[tuple[str, int], ...]  # the value as it is written: text, position
    is_dynamic: bool  # holds an expansion

    def place(self, offset: int, length: int) -> int:
        """The position of a part of the value; -1 if it is not written in one piece."""
        for text, position in self.pieces:
            if offset < len(text):
                return position + offset if offset + length <= len(text) else -1
            offset -= len(text)
        return -1


@dataclass
class ShellCommand:
    """The words of one simple command, and the operator that ends it."""

    words: list[Word] = field(default_factory=list)
    operator: str = ""
    before: str = ""  # the operator in front of it
    is_nested: bool = False  # its output is put into another command
    is_list: bool = False  # given as a list of strings: a word can't be taken out, or become two


@dataclass
class Script:
    """What a script consists of."""

    commands: list[ShellCommand] = field(default_factory=list)
    references: list[tuple[str, int, int]] = field(
        default_factory=list
    )  # $NAME or ${NAME...}: the name, its span
    comments: list[tuple[int, int]] = field(default_factory=list)
    heredocs: list[tuple[int, int, ShellCommand]] = field(
        default_factory=list
    )  # with the command that reads it


class _Lexer:
    def __init__(self, chars: str, script: Script, end: int) -> None:
        self.chars = chars
        self.script = script
        self.end = end
        self.waiting: list[tuple[str, bool, ShellCommand]] = []  # heredocs that begin on the next line
        self.nested = 0  # commands within commands

    def commands(self, position: int, closing: str = "", is_nested: bool = False) -> int:
        """Read commands up to a closing character; answers with the position behind it."""
        chars = self.chars
        command = ShellCommand(is_nested=is_nested)
        operator = ""
        depth = 0
        while position < self.end:
            char = chars[position]
            if closing and char == closing and (closing != ")" or depth == 0):
                self._close(command, operator, char)
                return position + 1
            if char in _BLANK:
                position += 1
            elif char == "\\" and chars[position + 1 : position + 2] in ("\n", "\r"):
                position += 3 if chars[position + 1 : position + 3] == "\r\n" else 2
            elif char == "#":
                position = self._comment(position)
            elif char in _OPERATORS:
                depth += {"(": 1, ")": -1}.get(char, 0)
                depth = max(depth, 0)
                is_double = chars[position : position + 2] in ("&&", "||", ";;", "|&")
                stop = position + (2 if is_double else 1)
                self._close(command, operator, chars[position:stop])
                operator = chars[position:stop]
                command = ShellCommand(is_nested=is_nested)
                position = self._heredocs(stop) if char == "\n" else stop
            elif match := _HEREDOC.match(chars, position, self.end):
                name = match.group(2) or match.group(3) or match.group(4)
                self.waiting.append((name, bool(match.group(1)), command))
                position = match.end()
            elif match := _REDIRECTION.match(chars, position, self.end):
                position = self._skip_target(match.end())
            else:
                word = self._word(position, closing)
                command.words.append(word)
                position = word.end
        self._close(command, operator, "")
        return position

    def _close(self, command: ShellCommand, before: str, operator: str) -> None:
        command.before, command.operator = before, operator
        if command.words:
            self.script.commands.append(command)

    def _comment(self, position: int) -> int:
        stop = self._find("\n", position)
        self.script.comments.append((position, stop))
        return stop

    def _skip_target(self, position: int) -> int:
        while position < self.end and self.chars[position] in _BLANK:
            position += 1
        if position >= self.end or self.chars[position] in _OPERATORS:
            return position
        return self._word(position, "").end

    def _heredocs(self, position: int) -> int:
        for name, is_indented, command in self.waiting:
            begin = position
            while position < self.end:
                stop = self._find("\n", position)
                line = self.chars[position:stop].rstrip("\r")
                position = min(stop + 1, self.end)
                if (line.lstrip("\t") if is_indented else line) == name:
                    break
            self.script.heredocs.append((begin, position, command))
        self.waiting = []
        return position

    def _word(self, position: int, closing: str) -> Word:
        chars, start = self.chars, position
        pieces: list[tuple[str, int]] = []  # text without quotes, and where it is written
        is_dynamic = False
        while position < self.end:
            char = chars[position]
            if char in _BLANK or char in _OPERATORS or (char in "<>" and position > start) or char == closing:
                if not (char == "(" and position > start and chars[position - 1] in "=@?*+!"):
                    break
                position = self._array(position)
                is_dynamic = True
            elif char == "'":
                stop = self._find("'", position + 1)
                pieces.append((chars[position + 1 : stop], position + 1))
                position = min(stop + 1, self.end)
            elif char == '"':
                stop, found = self._double(position + 1)
                pieces.append((chars[position + 1 : stop - 1], position + 1))
                is_dynamic = is_dynamic or found
                position = min(stop, self.end)
            elif char == "$" or char == "`":
                stop = self._expansion(position)
                is_dynamic = is_dynamic or stop > position + 1
                pieces.append((chars[position:stop], position))
                position = stop
            elif char == "\\":
                pieces.append((chars[position + 1 : position + 2], position + 1))
                position = min(position + 2, self.end)
            else:
                pieces.append((char, position))
                position += 1
        value = "".join(text for text, _ in pieces)
        return Word(start, position, chars[start:position], value, _joined(pieces), is_dynamic)

    def _array(self, position: int) -> int:
        """NAME=(one two): its words count as the words of a command without a name."""
        command = ShellCommand()
        position += 1
        while position < self.end and self.chars[position] != ")":
            char = self.chars[position]
            if char in _BLANK or char in _OPERATORS:
                position += 1
            elif char == "\\" and self.chars[position + 1 : position + 2] in ("\n", "\r"):
                position += 2
            elif char == "#":
                position = self._comment(position)
            else:
                word = self._word(position, ")")
                position = max(word.end, position + 1)
                command.words.append(word)
        if command.words:
            empty = Word(command.words[0].start, command.words[0].start, "", "", (), True)
            command.words.insert(0, empty)
            self.script.commands.append(command)
        return min(position + 1, self.end)

    def _find(self, char: str, position: int) -> int:
        stop = self.chars.find(char, position, self.end)
        return self.end if stop < 0 else stop

    def _double(self, position: int) -> tuple[int, bool]:
        """The position behind a double-quoted text, and whether it holds an expansion."""
        is_dynamic = False
        while position < self.end:
            char = self.chars[position]
            if char == '"':
                return position + 1, is_dynamic
            if char == "\\":
                position += 2
            elif char in "$`":
                stop = self._expansion(position)
                is_dynamic = is_dynamic or stop > position + 1
                position = stop
            else:
                position += 1
        return self.end + 1, is_dynamic

    def _expansion(self, position: int) -> int:
        """Read $NAME, ${...}, $(...), $((...)) or `...`; answers with the position behind it."""
        chars = self.chars
        if chars[position] == "`":
            return self._nested_commands(position + 1, "`")
        if chars.startswith("$((", position):
            stop = chars.find("))", position, self.end)
            self._references(position, stop if stop >= 0 else self.end)
            return stop + 2 if stop >= 0 else self.end
        if chars.startswith("$(", position):
            return self._nested_commands(position + 2, ")")
        if chars.startswith("${", position):
            stop = self._brace(position + 2)
            self._references(position, stop)
            return stop
        match = _REFERENCE.match(chars, position, self.end)
        if match:
            self.script.references.append((match.group(1), *match.span(1)))
            return match.end()
        is_special = chars[position + 1 : position + 2] in tuple("@*#?$!-0123456789")
        return min(position + (2 if is_special else 1), self.end)

    def _nested_commands(self, position: int, closing: str) -> int:
        if self.nested >= _DEEPEST:  # every level holds the text of those in it
            return position
        self.nested += 1
        try:
            return self.commands(position, closing, is_nested=True)
        finally:
            self.nested -= 1

    def _brace(self, position: int) -> int:
        depth = 1
        while position < self.end:
            char = self.chars[position]
            depth += {"{": 1, "}": -1}.get(char, 0)
            if depth == 0:
                return position + 1
            position += 2 if char == "\\" else 1
        return self.end

    def _references(self, start: int, end: int) -> None:
        known = re.finditer(r"(?:\$\{?[#!]?|(?<=\$\(\())([A-Za-z_][A-Za-z0-9_]*)", self.chars[start:end])
        for match in known:
            self.script.references.append((match.group(1), start + match.start(1), start + match.end(1)))


def _joined(pieces: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Pieces that stand side by side as one."""
    joined: list[tuple[str, int]] = []
    for text, position in pieces:
        if joined and joined[-1][1] + len(joined[-1][0]) == position:
            joined[-1] = (joined[-1][0] + text, joined[-1][1])
        else:
            joined.append((text, position))
    return tuple(joined)


def read_script(chars: str, start: int = 0, end: int | None = None) -> Script:
    """Take a script apart, or the part of a text that is one."""
    script = Script()
    lexer = _Lexer(chars, script, len(chars) if end is None else end)
    position = start
    while position < lexer.end:
        position = lexer.commands(position)
    return script


def assignment(word: Word) -> tuple[str, int] | None:
    """NAME=value or NAME+=value: the name, and where in the word its value begins."""
    return argument_assignment(word) if word.text[:1] not in ("'", '"') else None


def argument_assignment(word: Word) -> tuple[str, int] | None:
    """The same for an argument, for example of `env`, where the whole may be in quotes; a command is none."""
    if word.text[:1] in ("'", '"') and re.search(r"[\s;&|]", word.value):
        return None
    match = re.match(r"([A-Za-z_][A-Za-z0-9_]*)\+?=", word.value)
    return (match.group(1), match.end()) if match and word.place(0, match.end()) >= 0 else None


def words_behind(command: ShellCommand) -> Iterator[Word]:
    """The words of a command without the reserved words in front of it."""
    is_front = True
    for word in command.words:
        if is_front and word.text in RESERVED:
            continue
        is_front = False
        yield word


RESERVED = frozenset(
    {"if", "then", "elif", "else", "do", "while", "until", "!", "{", "}", "time", "done", "fi"}
)

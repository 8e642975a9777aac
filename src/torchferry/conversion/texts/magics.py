"""What IPython adds to Python: magics, shell commands and questions, found in a cell and hidden from the parser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from torchferry.source.module import ParseError, parse_module

# Which lines begin a statement, for code that Python's own tokenizer can't read.

_TOKEN = re.compile(r"#|'''|\"\"\"|'|\"|[\[({]|[\])}]")
_ENDING = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in ("'", '"', "'''", '"""')}


class LineReader:
    """Reads line after line, and knows whether the next one begins a statement."""

    def __init__(self) -> None:
        self._depth = 0  # of brackets
        self._quote = ""  # of the string that is open
        self._is_continued = False  # by a backslash

    @property
    def begins_statement(self) -> bool:
        return not (self._depth or self._quote or self._is_continued)

    def read(self, line: str) -> None:
        """Take in one line, without its line feed."""
        line = line.rstrip("\r")
        position = 0
        while match := (_ENDING[self._quote] if self._quote else _TOKEN).search(line, position):
            token = match.group()
            if token == "#":
                line = ""
                break
            position = match.end()
            if self._quote:
                self._quote = "" if token == self._quote else self._quote
            elif token[0] in "'\"":
                self._quote = token
            elif token in "[({":
                self._depth += 1
            else:
                self._depth = max(self._depth - 1, 0)
        self._is_continued = line.endswith("\\")
        if len(self._quote) == 1 and not self._is_continued:
            self._quote = ""  # a string of one line ends with it


# Magics whose argument, or whose cell, is code of the notebook; the letters are options that take a value.
_CODE_MAGICS = {
    "time": "",
    "timeit": "nrpv",
    "prun": "DlsT",
    "memit": "rti",
    "lprun": "fmDTruz",
    "mprun": "fT",
    "debug": "b",
    "snakeviz": "f",
    "capture": "",
    "wandb": "",
}
_HAS_NO_CODE_BEHIND = ("capture", "wandb")  # what follows their name on the line is no code
_SHELL_MAGICS = ("sx", "system", "shell", "!")
_SHELL_CELLS = ("bash", "sh", "zsh", *_SHELL_MAGICS)
_COMMAND_MAGICS = ("pip", "conda", "mamba")  # %pip install is the command pip install
_ENVIRONMENT_MAGICS = ("env", "set_env")
_PYTHON_CELLS = ("python", "python3")  # a program of its own
_FILE_CELLS = ("writefile", "file")
_KERNEL_CELLS = ("cu", "cuda", "nvcc", "cuda_group_save")  # CUDA C++, compiled when the cell runs

_CELL_MAGIC = re.compile(r"%%(?P<name>!|\w+)[ \t]*(?P<rest>[^\n]*)")
_MAGIC = re.compile(r"%(?P<name>\w+)[ \t]*(?P<rest>.*)", re.DOTALL)
_NAMED = r"[\w.]+(?:\[[^\]\n]*\])*"
_ASSIGNED = re.compile(rf"(?P<names>{_NAMED}(?:[ \t]*,[ \t]*{_NAMED})*[ \t]*=[ \t]*)(?=[!%][^=\s])")
_QUESTION = re.compile(r"\?|[^#'\"\n]*\?{1,2}[ \t\r]*\Z")
# IPython takes these words for commands where they can't be Python.
_AUTOMATIC = re.compile(r"(?:pip|conda|cd|ls|mkdir|rm|cp|mv|cat)[ \t]+[^=\s(.\[,]")
_VARIABLE = re.compile(r"\w+(?P<between>[ \t]*=[ \t]*|[ \t]+(?=\S)|[ \t\r]*\Z)")


@dataclass(frozen=True)
class Foreign:
    """A stretch of a cell's source that another converter reads: a command, a script, a file."""

    start: int
    end: int
    name: str  # a file name: its suffix says which converter
    lead: str = ""  # put before the text, so that it reads as what it stands for
    between: str = "="  # what stands for the equals sign of an assignment

    def readable(self, text: str) -> str:
        """The text as its converter understands it."""
        return self.lead + (text if self.between == "=" else text.replace(self.between, "=", 1))

    def written(self, text: str) -> str | None:
        """The other way round; None if that can't be."""
        if not text.startswith(self.lead):
            return None
        text = text.removeprefix(self.lead)
        return text if self.between == "=" else text.replace("=", self.between, 1)


@dataclass(frozen=True)
class ShownLine:
    """A line of a cell as the parser sees it."""

    shown: str
    hidden: str = ""  # what was taken out behind the indentation, before code that is shown
    stands_in: bool = False  # `shown` stands for something that is no Python


@dataclass(frozen=True)
class CellReading:
    """A notebook's cell, taken apart."""

    lines: tuple[ShownLine, ...] = ()  # none: nothing here is code of the notebook
    foreign: tuple[Foreign, ...] = ()
    left: tuple[int, ...] = ()  # lines, from 0, that are neither
    is_indented: bool = False  # IPython takes the indentation away
    problem: str = ""  # why Python can't read it
    problem_line: int = 0  # from 0


def read_cell(source: str) -> CellReading:
    """Tell the Python of a cell from the rest."""
    lines = source.split("\n")
    if _why_unreadable(source) is None:
        return CellReading(tuple(ShownLine(line) for line in lines))
    reading = _CellReader(lines).read()
    if not reading.lines:
        return reading
    shown = "\n".join(line.shown for line in reading.lines)
    error = _why_unreadable(shown)
    if error is None:
        return reading
    if shown.lstrip("\n").startswith((" ", "\t")) and _why_unreadable(f"if 1:\n{shown}") is None:
        return replace(reading, is_indented=True)
    return CellReading(problem=error[0], problem_line=error[1])


def _why_unreadable(code: str) -> tuple[str, int] | None:
    try:
        parse_module(code)
    except ParseError as error:
        return str(error), error.line - 1
    return None


@dataclass
class _CellReader:
    lines: list[str]
    shown: list[ShownLine] = field(default_factory=list)
    foreign: list[Foreign] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def read(self) -> CellReading:
        is_code = self._cell_magics()
        if is_code:
            reader = LineReader()
            while self._index < len(self.lines):
                line = self.lines[self._index]
                indent = line[: len(line) - len(line.lstrip(" \t"))]
                if not reader.begins_statement or not self._added(line, indent):
                    reader.read(line)
                    self.shown.append(ShownLine(line))
        shown = tuple(self.shown) if is_code else ()
        return CellReading(shown, tuple(self.foreign), tuple(self.left))

    @property
    def _index(self) -> int:
        return len(self.shown)

    def _start(self, index: int) -> int:
        return sum(len(line) + 1 for line in self.lines[:index])

    def _cell_magics(self) -> bool:
        """Take the lines with %% at the top; says whether the rest is code of the notebook."""
        while self._index < len(self.lines):
            line = self.lines[self._index]
            match = _CELL_MAGIC.match(line)
            if match is None and line.strip():
                return True
            if match is None:
                self.shown.append(ShownLine(line))
            elif match["name"] not in _CODE_MAGICS:
                self._other_cell(match["name"], match["rest"].split())
                return False
            else:
                self._code_magic(line, match["name"], match.start("rest"))
        return True

    def _other_cell(self, magic: str, words: list[str]) -> None:
        body = self._start(self._index + 1)
        end = self._start(len(self.lines)) - 1
        names = [word for word in words if not word.startswith("-")]
        if magic in _SHELL_CELLS or (magic == "script" and names[:1] in (["bash"], ["sh"], ["zsh"])):
            self._other_program(body, end, "cell.sh")
        elif magic in _PYTHON_CELLS:
            self._other_program(body, end, "cell.py")
        elif magic in _KERNEL_CELLS:
            self._other_program(body, end, "cell.cu")
        elif magic in _FILE_CELLS and names:
            self._other_program(body, end, names[-1])
        else:
            self.left += range(self._index, len(self.lines))

    def _other_program(self, start: int, end: int, name: str) -> None:
        if start < end:
            self.foreign.append(Foreign(start, end, name))

    def _added(self, line: str, indent: str) -> bool:
        """Take a line that IPython adds to Python, if it is one."""
        text = line[len(indent) :]
        assigned = _ASSIGNED.match(text)
        stand_in = f"{assigned['names']}None" if assigned else "pass"
        begin = len(indent) + (assigned.end() if assigned else 0)
        command = line[begin:]
        if command.startswith("!"):
            self._foreign_lines(begin + len(command) - len(command.lstrip("!")), indent + stand_in)
        elif match := _MAGIC.match(command):
            self._line_magic(line, begin, match, indent + stand_in)
        elif _QUESTION.match(text):
            self._leave(indent + stand_in)
        elif _AUTOMATIC.match(text):
            self._foreign_lines(len(indent), indent + stand_in)
        else:
            return False
        return True

    def _line_magic(self, line: str, begin: int, match: re.Match[str], stand_in: str) -> None:
        name, rest = match["name"], begin + match.start("rest")
        if name in _CODE_MAGICS and stand_in.endswith("pass"):
            self._code_magic(line, name, rest)
        elif name in _SHELL_MAGICS:
            self._foreign_lines(rest, stand_in)
        elif name in _COMMAND_MAGICS:
            self._foreign_lines(begin + 1, stand_in)
        elif name == "run":
            self._foreign_lines(rest, stand_in, lead="python ")
        elif name in _ENVIRONMENT_MAGICS and (variable := _VARIABLE.match(line, rest)):
            if variable["between"].strip("\r"):
                self._foreign_lines(rest, stand_in, between=variable["between"])
            else:
                self._foreign_lines(rest, stand_in, lead="echo $")  # it shows the variable
        else:
            self._leave(stand_in)

    def _code_magic(self, line: str, name: str, rest: int) -> None:
        """Show the code behind a magic such as %timeit, and hide the magic and its options."""
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        code = line[rest:]
        valued = _CODE_MAGICS[name]
        option = rf"-[{valued}][ \t]*\S+[ \t]+|" if valued else ""
        options = re.match(rf"(?:{option}-[-\w]+[ \t]+)*", code)
        code = code[options.end() if options else 0 :]
        if name in _HAS_NO_CODE_BEHIND or not code.strip() or _why_unreadable(code.strip()) is not None:
            self._leave(f"{indent}pass")
            return
        self.shown.append(ShownLine(indent + code, hidden=line[len(indent) : len(line) - len(code)]))

    def _leave(self, stand_in: str) -> None:
        self.left.append(self._index)
        self.shown.append(ShownLine(stand_in, stands_in=True))

    def _foreign_lines(self, column: int, stand_in: str, lead: str = "", between: str = "=") -> None:
        """Take a command, with the lines that a backslash joins to it."""
        first = self._index
        start = self._start(first) + column
        for line in self.lines[first:]:
            self.shown.append(ShownLine(stand_in if self._index == first else "", stands_in=True))
            end = self._start(self._index - 1) + len(line.rstrip("\r"))
            if not line.rstrip("\r").endswith("\\"):
                break
        self.foreign.append(Foreign(start, end, "cell.sh", lead, between))

"""Notebooks: the sources of code cells change, every other byte of the file stays."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

from torchferry.conversion.discover import PYTHON_SUFFIXES
from torchferry.conversion.file import Conversion, FileJob, convert_text
from torchferry.conversion.rule import RuleSet
from torchferry.conversion.texts.magics import CellReading, Foreign, ShownLine, read_cell
from torchferry.conversion.texts.native_ops import CUDA_SUFFIXES
from torchferry.conversion.texts.notebook_file import NotebookCell, read_notebook
from torchferry.conversion.texts.shell import convert_shell
from torchferry.conversion.texts.text_rules import NOTEBOOK, SPEAKS_OF_CUDA, look_at_cuda_source, what_it_says
from torchferry.conversion.verify import Row, VerificationError
from torchferry.finding import Finding, Kind, Message, Wording, finding_of, undone
from torchferry.outcome import Hunk
from torchferry.source.decode import DecodedText
from torchferry.source.module import ParseError
from torchferry.text import Text

# The code cells of a notebook as one module, and the cells again from that module after its conversion.


class _Line(NamedTuple):
    start: int  # in the module
    cell: int
    offset: int  # in the source of the cell
    shown: ShownLine


class JoinedCells:
    """What is code in the cells, each behind a comment that tells where it begins.

    A line that stands for something else ends in a comment with a number, by which it is found again.
    """

    def __init__(self, sources: Sequence[str], readings: Sequence[CellReading]) -> None:
        self._tag = "ferry-cell"
        while any(self._tag in source for source in sources):
            self._tag += "-"
        self._sources = sources
        self._readings = readings
        self.cells = [index for index, reading in enumerate(readings) if reading.lines]
        self._marked: list[_Line] = []
        self._lines: list[_Line] = []
        self.text = self._join()
        self._mark = re.compile(rf"  #{self._tag}:(\d+)$")
        self._header = re.compile(rf"^(?:if 1:  )?#{self._tag} (\d+)\n", re.MULTILINE)

    def _join(self) -> str:
        pieces: list[str] = []
        position = 0
        for cell in self.cells:
            pieces.append(f"{'if 1:  ' if self._readings[cell].is_indented else ''}#{self._tag} {cell}\n")
            position += len(pieces[-1])
            offset = 0
            for line, shown in zip(self._sources[cell].split("\n"), self._readings[cell].lines, strict=True):
                self._lines.append(_Line(position, cell, offset, shown))
                text = shown.shown
                if shown.stands_in or shown.hidden:
                    text = f"{text.rstrip()}  #{self._tag}:{len(self._marked)}"
                    self._marked.append(self._lines[-1])
                pieces.append(f"{text}\n")
                position += len(pieces[-1])
                offset += len(line) + 1
        return "".join(pieces)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def origin(self, line: int, column: int) -> tuple[int, int]:
        """The cell of a line and column (from 1) of the module, and the position in its source."""
        position = self._line_starts[line - 1] + column - 1
        found = self._lines[max(bisect_right(self._lines, position, key=lambda item: item.start) - 1, 0)]
        source = self._sources[found.cell]
        if found.shown.stands_in:
            return found.cell, found.offset
        column = max(position - found.start, 0)
        if column >= _indentation(found.shown.shown):
            column += len(found.shown.hidden)
        return found.cell, min(found.offset + column, len(source))

    def cells_of(self, text: str, sources: Sequence[str]) -> dict[int, str]:
        """The source of each cell in the converted module; `sources` has the lines that were not shown."""
        pieces = self._header.split(text)
        if pieces[0] or [int(number) for number in pieces[1::2]] != self.cells:
            raise VerificationError("a change would reach from one cell into another")
        found: dict[int, str] = {}
        expected = 0
        for cell, piece in zip(self.cells, pieces[2::2], strict=True):
            hidden = sources[cell].split("\n")
            lines: list[str] = []
            for line in piece.removesuffix("\n").split("\n"):
                match = self._mark.search(line)
                if match is None:
                    lines.append(line)
                    continue
                if int(match.group(1)) != expected:
                    raise VerificationError("a change would move a line that is no Python")
                lines.append(self._unmarked(line[: match.start()], expected, hidden))
                expected += 1
            found[cell] = "\n".join(lines)
            if set(_NEWLINE.findall(sources[cell])) == {"\r\n"}:
                found[cell] = re.sub(r"(?<!\r)\n", "\r\n", found[cell])
        if expected != len(self._marked):
            raise VerificationError("a change would remove a line that is no Python")
        return found

    def _unmarked(self, line: str, number: int, hidden: list[str]) -> str:
        """What a marked line stands for; its indentation may have changed."""
        marked = self._marked[number]
        original = hidden[self._sources[marked.cell].count("\n", 0, marked.offset)]
        indent = line[: _indentation(line)]
        if not marked.shown.stands_in:
            ending = original[len(original.rstrip()) :]
            return f"{indent}{marked.shown.hidden}{line[len(indent) :]}{ending}"
        if line.strip() != marked.shown.shown.strip():
            raise VerificationError("a change would reach into a line that is no Python")
        if not line.strip() or indent == marked.shown.shown[: _indentation(marked.shown.shown)]:
            return original
        return indent + original.lstrip(" \t")

    def without_marks(self, text: str) -> str:
        """A piece of the module for people to read."""
        if self._tag not in text:
            return text
        lines = (self._mark.sub("", line) for line in text.split("\n"))
        return "\n".join(line for line in lines if self._tag not in line)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


_UNPARSED = Message(
    Text("Notebook cell that Python can't parse", "Python 无法解析的 notebook 单元"),
    why=Text("{reason}. The cell was left unchanged.", "{reason}。该单元保持原样。"),
    do=Text("Fix the cell, then convert again.", "请修正该单元，然后重新转换。"),
)
_LEFT = Message(
    Text("IPython line, or a line in another language", "IPython 或其他语言的行"),
    why=Text("It was left unchanged.", "保持不变。"),
    do=Text("Change it by hand if it concerns the device.", "若与设备有关，请手动修改。"),
)
_ACROSS = Message(
    Text("Notebook not restructured", "未对 notebook 做结构调整"),
    why=Text("{reason}. The cells were converted without it.", "{reason}。各单元仅做了普通转换。"),
    do=Text(
        "Restructure the cells by hand, or move the training into a script.",
        "请手动调整各单元，或把训练移到脚本中。",
    ),
)
_NEWLINE = re.compile("\r\n|\r|\n")


class Remark(NamedTuple):
    """A finding, and where it belongs: `finding.line` and `finding.col` are not of the file yet."""

    cell: int
    offset: int  # in the source of the cell
    finding: Finding


class _NotebookCells:
    def __init__(self, sources: Sequence[str], path: str, job: FileJob) -> None:
        self.old = sources
        self.new = list(sources)
        self.path = path
        self.job = job
        self.readings = [read_cell(source) for source in sources]
        self.remarks: list[Remark] = []

    def convert(self) -> tuple[list[str], list[Remark], str]:
        """What became of the sources, what there is to say, and why nothing may be changed ("" if it may)."""
        for cell, reading in enumerate(self.readings):
            if reading.problem and SPEAKS_OF_CUDA.search(self.old[cell]):
                message = _UNPARSED.format(reason=reading.problem)
                self._say(cell, self._line_start(cell, reading.problem_line), Kind.TODO, message)
                for start, line, match in self._speaking_lines(cell, range(self.old[cell].count("\n") + 1)):
                    self._say(cell, start, Kind.TODO, what_it_says(match.group(), self.job.target), line)
            for start, line, _ in self._speaking_lines(cell, reading.left):
                self._say(cell, start, Kind.INFO, _LEFT, line)
            for foreign in reversed(reading.foreign):
                self._convert_foreign(cell, foreign)
        failure = self._convert_module()
        if failure:
            left = [remark._replace(finding=undone(remark.finding)) for remark in self.remarks]
            return list(self.old), left, failure
        return self.new, sorted(self.remarks, key=lambda item: item[:2]), ""

    def _speaking_lines(self, cell: int, lines: Sequence[int]) -> Iterator[tuple[int, str, re.Match[str]]]:
        for number, line in enumerate(self.old[cell].split("\n")):
            match = SPEAKS_OF_CUDA.search(line) if number in lines else None
            if match:
                yield self._line_start(cell, number) + match.start(), line.strip(), match

    def _line_start(self, cell: int, line: int) -> int:
        lines = self.old[cell].split("\n")
        return sum(len(text) + 1 for text in lines[:line])

    def _say(self, cell: int, offset: int, kind: Kind, message: Wording, before: str = "") -> None:
        if NOTEBOOK in self.job.rules.rules:
            place, vendor = (self.path, 1, 1), self.job.target.name
            finding = finding_of(
                NOTEBOOK.id, kind, place, message, vendor, before=before[:200], source=before[:200]
            )
            self.remarks.append(Remark(cell, offset, finding))

    def _convert_foreign(self, cell: int, foreign: Foreign) -> None:
        """A command or a script inside a cell. One that would not keep its lines stays as it is."""
        source = self.new[cell]
        text = foreign.readable(source[foreign.start : foreign.end])
        try:
            conversion = _convert_foreign(DecodedText(text, "utf-8"), foreign.name, self.path, self.job)
        except ParseError as error:
            conversion = Conversion((), failure=str(error))
        new = foreign.written(text if conversion.new_text is None else conversion.new_text)
        if self.readings[cell].lines and new is not None and new.count("\n") != text.count("\n"):
            new = None
        if conversion.failure:
            self._say(cell, foreign.start, Kind.TODO, _UNPARSED.format(reason=conversion.failure))
        starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        for finding in conversion.findings:
            position = starts[finding.line - 1] + finding.col - 1 - len(foreign.lead)
            offset = foreign.start + max(position, 0)
            self.remarks.append(Remark(cell, offset, undone(finding) if new is None else finding))
        if new is not None:
            self.new[cell] = source[: foreign.start] + new + source[foreign.end :]

    def _convert_module(self) -> str:
        """Convert the Python of all cells; answers with the reason if nothing may be changed."""
        joined = JoinedCells(self.old, self.readings)
        data = b"\n" + joined.text.encode("utf-8")
        if not (self.job.rules.is_called_for(data) or self.job.rules.import_pattern.search(data)):
            return ""
        failure = self._try_module(joined, self.job)
        if failure and self.job.rules.restructuring:
            plain = RuleSet(rule for rule in self.job.rules.rules if rule.restructure is None)
            first = joined.cells[0]
            self._say(first, 0, Kind.TODO, _ACROSS.format(reason=failure))
            failure = self._try_module(joined, replace(self.job, rules=plain))
        return failure

    def _try_module(self, joined: JoinedCells, job: FileJob) -> str:
        conversion = convert_text(DecodedText(joined.text, "utf-8"), self.path, job)
        try:
            if conversion.failure:
                raise VerificationError(conversion.failure)
            converted = joined.cells_of(conversion.new_text or joined.text, self.new)
        except VerificationError as error:
            if not job.rules.restructuring:
                self._remember(joined, conversion)
            return str(error)
        self._remember(joined, conversion)
        for cell, source in converted.items():
            self.new[cell] = source
        return ""

    def _remember(self, joined: JoinedCells, conversion: Conversion) -> None:
        for finding in conversion.findings:
            clean = replace(
                finding,
                before=joined.without_marks(finding.before),
                after=joined.without_marks(finding.after),
            )
            self.remarks.append(Remark(*joined.origin(finding.line, finding.col), clean))


_IN_CELL = Text("The place is in cell {number}.", "位于第 {number} 个单元。")
_OTHER_LANGUAGE = Message(
    Text("Notebook in {language}", "{language} 的 notebook"),
    why=Text("Only Python notebooks are converted.", "只转换 Python notebook。"),
)
_CONTEXT = 3  # lines around a change


def convert_notebook(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """Convert the code cells of a notebook; raises ParseError if the file is none."""
    notebook = read_notebook(decoded.text)
    if not notebook.is_python:
        # There is one thing to say about it, if it has anything to do with CUDA.
        speaks_of_cuda = any(SPEAKS_OF_CUDA.search(cell.source) for cell in notebook.cells)
        if NOTEBOOK not in job.rules.rules or not speaks_of_cuda:
            return Conversion(())
        message = _OTHER_LANGUAGE.format(language=notebook.language)
        return Conversion((finding_of(NOTEBOOK.id, Kind.INFO, (path, 1, 1), message, job.target.name),))
    sources = [cell.source for cell in notebook.cells]
    converted, remarks, failure = _NotebookCells(sources, path, job).convert()
    places = _FilePlaces(decoded.text, notebook.cells)
    findings = tuple(map(places.finding, remarks))
    if failure:
        return Conversion(findings, failure=failure)
    written = list(zip(notebook.cells, converted, strict=True))
    changed = [(cell, source) for cell, source in written if source != cell.source]
    if not changed:
        return Conversion(findings)
    numbered = {cell.number: source for cell, source in written}
    new_text, hunks = _rewritten(decoded.text, changed, places)
    try:
        _check(decoded.text, new_text, numbered)
        if _NotebookCells(converted, path, job).convert()[0] != converted:
            raise VerificationError("a second conversion would change a cell again")
    except VerificationError as error:
        return Conversion(tuple(map(undone, findings)), failure=str(error))
    return Conversion(findings, new_text, hunks)


def _convert_foreign(decoded: DecodedText, name: str, path: str, job: FileJob) -> Conversion:
    """What a cell holds beside the notebook's own code."""
    from torchferry.conversion.texts.kinds import converter_of  # which knows notebooks as well

    if name.endswith(PYTHON_SUFFIXES):
        return convert_text(decoded, path, job)
    if name.endswith(".sh"):
        return convert_shell(decoded, path, job)
    if name.endswith(CUDA_SUFFIXES):
        return Conversion((look_at_cuda_source(path, job.target),))
    convert = converter_of(name, decoded.text.encode("utf-8", "replace"))
    return convert(decoded, path, job) if convert else Conversion(())


class _FilePlaces:
    def __init__(self, text: str, cells: Sequence[NotebookCell]) -> None:
        self._cells = cells
        ending = "\n" if "\n" in text else "\r"
        self._line_starts = [0, *accumulate(len(line) + 1 for line in text.split(ending))][:-1]

    def line(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def finding(self, remark: Remark) -> Finding:
        """A finding at its place in the file, with the number of its cell."""
        cell = self._cells[remark.cell]
        position = cell.text.position(remark.offset)
        line = self.line(position)
        column = position - self._line_starts[line - 1] + 1
        why = remark.finding.parts.because(_IN_CELL.format(number=cell.number)).why
        return replace(remark.finding, line=line, col=column, why=why)


def _rewritten(
    text: str, changed: list[tuple[NotebookCell, str]], places: _FilePlaces
) -> tuple[str, tuple[Hunk, ...]]:
    """The file with new sources, and what changed in it, as code."""
    pieces: list[str] = []
    hunks: list[Hunk] = []
    done = shift = 0
    for cell, source in changed:
        written, rows = cell.text.rewritten(source, ascii_only=text.isascii())
        pieces += [text[done : cell.text.start], written]
        done = cell.text.end
        hunks += _hunks(cell, rows, places, shift)
        shift += written.count("\n") - text.count("\n", cell.text.start, cell.text.end)
    return "".join([*pieces, text[done:]]), tuple(hunks)


def _hunks(cell: NotebookCell, rows: list[Row], places: _FilePlaces, shift: int) -> list[Hunk]:
    """Stretches of changed lines; in a list of lines each is a line of the file as well."""
    starts = [0, *accumulate(len(old) for _, old, _ in rows)]
    has_lines = cell.text.has_line_per_string and "\n" in "".join(cell.text.gaps)
    hunks: list[Hunk] = []
    for first, last in _stretches([index for index, row in enumerate(rows) if row[0] != " "], len(rows)):
        line = places.line(cell.text.position(starts[first]))
        added = sum({"+": 1, "-": -1}.get(tag, 0) for tag, _, _ in rows[:first]) if has_lines else 0
        shown = ((tag, old.rstrip("\r\n"), new.rstrip("\r\n")) for tag, old, new in rows[first:last])
        shown = ((" " if tag == "~" and old == new else tag, old, new) for tag, old, new in shown)
        hunks.append(Hunk(line, line + shift + added, tuple(shown)))
    return hunks


def _stretches(changed: list[int], count: int) -> list[tuple[int, int]]:
    """Ranges of rows: the changed ones with those around them."""
    found: list[tuple[int, int]] = []
    for index in changed:
        first, last = max(index - _CONTEXT, 0), min(index + _CONTEXT + 1, count)
        if found and first <= found[-1][1]:
            first = found.pop()[0]
        found.append((first, last))
    return found


def _check(old: str, new: str, sources: dict[int, str]) -> None:
    """The new file must say the same as the old one, but for the sources of code cells."""
    before, after = _loaded(old), _loaded(new)
    for number, (was, now) in enumerate(zip(_cells(before), _cells(after), strict=False), start=1):
        if number not in sources:
            continue
        key = "source" if "source" in now else "input"
        if "".join(now[key]) != sources[number]:
            raise VerificationError(f"cell {number} would not read as it should")
        was[key] = now[key] = None
    if before != after:
        raise VerificationError("the notebook would differ outside of its code")


def _loaded(text: str) -> Any:
    """As JSON reads it; numbers are compared as they are written."""
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except ValueError as error:
        raise VerificationError(f"the new file is no JSON: {error}") from None


def _cells(notebook: Any) -> list[Any]:
    sheets = notebook.get("worksheets", [])
    return [*notebook.get("cells", []), *(cell for sheet in sheets for cell in sheet.get("cells", []))]

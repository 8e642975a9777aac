"""Notebooks: the sources of code cells change, every other byte of the file stays."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any

from torchferry.convert.discover import PYTHON_SUFFIXES
from torchferry.convert.file import Conversion, FileJob, convert_text
from torchferry.convert.hunks import Row
from torchferry.convert.texts.native_ops import CUDA_SUFFIXES
from torchferry.convert.texts.notebook_cells import ConvertedCells, Remark, convert_cells, is_wanted
from torchferry.convert.texts.notebook_file import Cell, Notebook, read_notebook
from torchferry.convert.texts.shell import convert_shell
from torchferry.convert.texts.text_rules import NOTEBOOK, SPEAKS_OF_CUDA, look_at_cuda_source
from torchferry.convert.verify import VerificationError
from torchferry.finding import Finding, Kind
from torchferry.outcome import Hunk
from torchferry.source.decode import DecodedText
from torchferry.text import Text

_IN_CELL = Text("cell {number}: {message}", "单元 {number}：{message}")
_OTHER_LANGUAGE = Text(
    "the kernel speaks {language}, not Python: left as it is", "内核语言为 {language}，不是 Python：保持不变"
)
_CONTEXT = 3  # lines around a change


def convert_notebook(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """Convert the code cells of a notebook; raises ParseError if the file is none."""
    notebook = read_notebook(decoded.text)
    if not notebook.is_python:
        return Conversion(_left(notebook, path, job))
    sources = [cell.source for cell in notebook.cells]
    converted = convert_cells(sources, path, job, _convert_foreign)
    places = _Places(decoded.text, notebook.cells)
    findings = tuple(map(places.finding, converted.remarks))
    if converted.failure:
        return Conversion(findings, failure=converted.failure)
    changed = [
        (cell, source)
        for cell, source in zip(notebook.cells, converted.sources, strict=True)
        if source != cell.source
    ]
    if not changed:
        return Conversion(findings)
    numbered = {cell.number: source for cell, source in zip(notebook.cells, converted.sources, strict=True)}
    new_text, hunks = _rewritten(decoded.text, changed, places)
    try:
        _check(decoded.text, new_text, numbered)
        _check_second_run(converted, path, job)
    except VerificationError as error:
        undone = (replace(item, kind=Kind.TODO) if item.kind is Kind.CHANGE else item for item in findings)
        return Conversion(tuple(undone), failure=str(error))
    return Conversion(findings, new_text, hunks)


def _convert_foreign(decoded: DecodedText, name: str, path: str, job: FileJob) -> Conversion:
    """What a cell holds beside the notebook's own code."""
    from torchferry.convert.texts.kinds import converter_of  # which knows notebooks as well

    if name.endswith(PYTHON_SUFFIXES):
        return convert_text(decoded, path, job)
    if name.endswith(".sh"):
        return convert_shell(decoded, path, job)
    if name.endswith(CUDA_SUFFIXES):
        return Conversion((look_at_cuda_source(path, job.target),))
    convert = converter_of(name, decoded.text.encode("utf-8", "replace"))
    return convert(decoded, path, job) if convert else Conversion(())


def _left(notebook: Notebook, path: str, job: FileJob) -> tuple[Finding, ...]:
    """The one thing to say about a notebook in another language, if it has anything to do with CUDA."""
    if not is_wanted(job) or not any(SPEAKS_OF_CUDA.search(cell.source) for cell in notebook.cells):
        return ()
    message = _OTHER_LANGUAGE.format(language=notebook.language)
    return (Finding(NOTEBOOK.id, Kind.INFO, path, 1, 1, "", "", message, job.target.name),)


class _Places:
    """Lines and columns of the file."""

    def __init__(self, text: str, cells: Sequence[Cell]) -> None:
        self._text = text
        self._cells = cells

    @cached_property
    def _line_starts(self) -> list[int]:
        ending = "\n" if "\n" in self._text else "\r"
        return [0, *accumulate(len(line) + 1 for line in self._text.split(ending))][:-1]

    def line(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def finding(self, remark: Remark) -> Finding:
        """A finding at its place in the file, with the number of its cell."""
        cell = self._cells[remark.cell]
        position = cell.text.position(remark.offset)
        line = self.line(position)
        message = _IN_CELL.format(number=cell.number, message=remark.finding.message)
        column = position - self._line_starts[line - 1] + 1
        return replace(remark.finding, line=line, col=column, message=message)


def _rewritten(text: str, changed: list[tuple[Cell, str]], places: _Places) -> tuple[str, tuple[Hunk, ...]]:
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


def _hunks(cell: Cell, rows: list[Row], places: _Places, shift: int) -> list[Hunk]:
    """Stretches of changed lines; in a list of lines each is a line of the file as well."""
    starts = [0, *accumulate(len(old) for _, old, _ in rows)]
    has_lines = cell.text.has_line_per_string and "\n" in "".join(cell.text.gaps)
    hunks: list[Hunk] = []
    for first, last in _stretches([index for index, row in enumerate(rows) if row[0] != " "], len(rows)):
        line = places.line(cell.text.position(starts[first]))
        added = sum({"+": 1, "-": -1}.get(tag, 0) for tag, _, _ in rows[:first]) if has_lines else 0
        shown = tuple(_without_ending(row) for row in rows[first:last])
        hunks.append(Hunk(line, line + shift + added, shown))
    return hunks


def _without_ending(row: Row) -> Row:
    tag, old, new = row[0], row[1].rstrip("\r\n"), row[2].rstrip("\r\n")
    return (" " if tag == "~" and old == new else tag), old, new


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


def _check_second_run(converted: ConvertedCells, path: str, job: FileJob) -> None:
    again = convert_cells(converted.sources, path, job, _convert_foreign)
    if again.sources != converted.sources:
        raise VerificationError("a second conversion would change a cell again")

"""The cells of a notebook, converted together: their Python as one module, the rest by the converters it belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torchferry.convert.file import Conversion, FileJob, convert_text
from torchferry.convert.ruleset import RuleSet
from torchferry.convert.texts.glance import SPEAKS_OF_CUDA, what_it_says
from torchferry.convert.texts.joined_cells import JoinedCells
from torchferry.convert.texts.magics import CellReading, Foreign, read_cell
from torchferry.convert.texts.text_rules import NOTEBOOK
from torchferry.convert.verify import VerificationError
from torchferry.finding import Finding, Kind
from torchferry.source.decode import DecodedText
from torchferry.source.module import ParseError
from torchferry.text import Text

_UNPARSED = Text(
    "Python can't parse this cell ({reason}); it alone was left as it is",
    "Python 无法解析此单元（{reason}）；仅该单元保持原样",
)
_LEFT = Text("a line of IPython's or of another language: left as it is", "IPython 或其他语言的行：保持不变")
_ACROSS = Text(
    "not restructured: {reason}; the cells were converted without it",
    "未做结构调整：{reason}；各单元仅做了普通转换",
)
_NEWLINE = re.compile("\r\n|\r|\n")

ForeignConverter = Callable[[DecodedText, str, str, FileJob], Conversion]  # text, its name, path, job


class Remark(NamedTuple):
    """A finding, and where it belongs: `finding.line` and `finding.col` are not of the file yet."""

    cell: int
    offset: int  # in the source of the cell
    finding: Finding


@dataclass(frozen=True)
class ConvertedCells:
    """What became of the sources."""

    sources: tuple[str, ...]
    remarks: tuple[Remark, ...]
    failure: str = ""


def is_wanted(job: FileJob) -> bool:
    """Whether the user wants to hear of what is special about notebooks."""
    return NOTEBOOK in job.rules.rules


def convert_cells(
    sources: Sequence[str], path: str, job: FileJob, convert_foreign: ForeignConverter
) -> ConvertedCells:
    """Convert the code cells of one notebook."""
    return _Cells(sources, path, job, convert_foreign).convert()


class _Cells:
    def __init__(
        self, sources: Sequence[str], path: str, job: FileJob, convert_foreign: ForeignConverter
    ) -> None:
        self.old = sources
        self.new = list(sources)
        self.path = path
        self.job = job
        self.convert_foreign = convert_foreign
        self.readings = [read_cell(source) for source in sources]
        self.remarks: list[Remark] = []

    def convert(self) -> ConvertedCells:
        for cell, reading in enumerate(self.readings):
            self._say_what_is_left(cell, reading)
            for foreign in reversed(reading.foreign):
                self._convert_foreign(cell, foreign)
        failure = self._convert_module()
        if failure:
            undone = (remark._replace(finding=_undone(remark.finding)) for remark in self.remarks)
            return ConvertedCells(tuple(self.old), tuple(undone), failure)
        return ConvertedCells(tuple(self.new), tuple(sorted(self.remarks, key=lambda item: item[:2])))

    def _say_what_is_left(self, cell: int, reading: CellReading) -> None:
        if reading.problem and SPEAKS_OF_CUDA.search(self.old[cell]):
            message = _UNPARSED.format(reason=reading.problem)
            self._say(cell, self._line_start(cell, reading.problem_line), Kind.TODO, message)
            for start, line, match in self._speaking_lines(cell, range(self.old[cell].count("\n") + 1)):
                self._say(cell, start, Kind.TODO, what_it_says(match.group(), self.job.target), line)
        for start, line, _ in self._speaking_lines(cell, reading.left):
            self._say(cell, start, Kind.INFO, _LEFT, line)

    def _speaking_lines(self, cell: int, lines: Sequence[int]) -> Iterator[tuple[int, str, re.Match[str]]]:
        for number, line in enumerate(self.old[cell].split("\n")):
            match = SPEAKS_OF_CUDA.search(line) if number in lines else None
            if match:
                yield self._line_start(cell, number) + match.start(), line.strip(), match

    def _line_start(self, cell: int, line: int) -> int:
        lines = self.old[cell].split("\n")
        return sum(len(text) + 1 for text in lines[:line])

    def _say(self, cell: int, offset: int, kind: Kind, message: Text, before: str = "") -> None:
        if is_wanted(self.job):
            finding = Finding(
                NOTEBOOK.id, kind, self.path, 1, 1, before[:200], "", message, self.job.target.name
            )
            self.remarks.append(Remark(cell, offset, finding))

    def _convert_foreign(self, cell: int, foreign: Foreign) -> None:
        """A command or a script inside a cell. One that would not keep its lines stays as it is."""
        source = self.new[cell]
        text = foreign.readable(source[foreign.start : foreign.end])
        try:
            conversion = self.convert_foreign(DecodedText(text, "utf-8"), foreign.name, self.path, self.job)
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
            self.remarks.append(Remark(cell, offset, _undone(finding) if new is None else finding))
        if new is not None:
            self.new[cell] = source[: foreign.start] + new + source[foreign.end :]

    def _convert_module(self) -> str:
        """Convert the Python of all cells; answers with the reason if nothing may be changed."""
        joined = JoinedCells(self.old, self.readings)
        if not _is_worth_parsing(joined.text, self.job.rules):
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


def _is_worth_parsing(text: str, rules: RuleSet) -> bool:
    data = b"\n" + text.encode("utf-8")
    return rules.is_called_for(data) or bool(rules.import_pattern.search(data))


def _undone(finding: Finding) -> Finding:
    """A change that was thrown away is work for the user."""
    return replace(finding, kind=Kind.TODO) if finding.kind is Kind.CHANGE else finding

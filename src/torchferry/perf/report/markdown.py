"""Markdown, to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.model import Diagnosis
from torchferry.perf.report import sentences, tables, words
from torchferry.perf.report.sentences import LONGEST_NAME, RunsReport
from torchferry.report.formats import Options
from torchferry.report.markdown import code, prose
from torchferry.report.page import Table, markdown_table
from torchferry.text import Text


def to_markdown(report: RunsReport, options: Options) -> str:
    """The report as Markdown."""
    return "\n".join(_Lines(report, options).all()) + "\n"


class _Lines:
    def __init__(self, report: RunsReport, options: Options) -> None:
        self._report = report
        self._options = options

    def _say(self, text: Text) -> str:
        """Commands stay code; everything else is what it is."""
        return prose(self._options.say(text))

    def all(self) -> Iterator[str]:
        analyses = self._report.analyses
        shown = analyses[sentences.slowest(analyses)]
        head, *rest = sentences.verdict(shown)
        yield f"# {self._say(head)}"
        yield ""
        said = [*rest, *([sentences.ranks(analyses)] if len(analyses) > 1 else [])]
        yield from (f"- {self._say(text)}" for text in [*said, *sentences.about(shown)])
        yield from (f"- {code(source)}" for source in shown.sources)
        for each in self._report.comparisons:
            yield from ("", f"## {self._say(words.COMPARISON)}", "")
            yield from (f"- {self._say(text)}" for text in [*sentences.comparison(each), *each.notes])
            yield from self._table(tables.compared_parts(each))
            for _, title, pairs in tables.pairs_of(each):
                yield from self._titled(tables.pairs(title, pairs, says_exact=True), "###")
        if len(analyses) > 1:
            yield from self._titled(tables.ranks(analyses))
        yield from self._titled(tables.parts(shown))
        for number, diagnosis in enumerate(shown.diagnoses, 1):
            yield from self._diagnosis(number, diagnosis)
        yield from self._titled(tables.operators(shown).without_empty_columns())
        yield from self._titled(tables.kernels(shown))
        missing = [
            f"- {self._say(words.NOT_CHECKED)}: {code(name)} ({self._say(why)})"
            for name, why in sentences.unchecked_by_reason(shown)
        ]
        notes = [f"- {self._say(words.NOTE)}: {self._say(note)}" for note in shown.notes]
        if missing or notes:
            yield from ("", *missing, *notes)

    def _titled(self, table: Table, level: str = "##") -> Iterator[str]:
        if table.rows:
            yield from ("", f"{level} {self._say(table.title)}", *self._table(table))

    def _table(self, table: Table) -> Iterator[str]:
        if table.rows:
            yield from ("", *markdown_table(table.first(self._report.top), self._options, LONGEST_NAME))

    def _diagnosis(self, number: int, diagnosis: Diagnosis) -> Iterator[str]:
        severity = self._say(words.SEVERITY[diagnosis.severity].name)
        yield from ("", f"## {number}. {self._say(diagnosis.title)} ({severity}, {code(diagnosis.id)})")
        yield from ("", self._say(diagnosis.summary))
        yield from self._table(tables.evidence(diagnosis))
        yield ""
        yield from (f"- {self._say(words.REMEDY)}: {self._say(remedy)}" for remedy in diagnosis.remedies)
        gain = sentences.gain(diagnosis)
        if gain:
            yield f"- {self._say(words.GAIN)}: {self._say(gain)}"

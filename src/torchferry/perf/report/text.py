"""An analysis as text: for the terminal, the verdict first, where the time goes, each finding with proof and remedy; as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.perf.compare.model import RunComparison
from torchferry.perf.model import Analysis, Diagnosis
from torchferry.perf.report import sentences, tables, words
from torchferry.perf.report.sentences import LONGEST_NAME, RunsReport
from torchferry.report.formats import Options
from torchferry.report.markdown import code, prose
from torchferry.report.page import Table, drawn, markdown_table
from torchferry.report.terminal import Screen, Words, plain
from torchferry.text import Text, named

if TYPE_CHECKING:
    from rich.console import RenderableType

LEAST_WIDTH = 60  # tables in less than that show nothing: long lines are better
_BAR = 40


def to_text(report: RunsReport, options: Options) -> str:
    """The report for a terminal, or without colours."""
    from rich.table import Table as Drawn

    screen = Screen(options, LEAST_WIDTH)
    for each in _all(report, Words(options, report.top)):
        if isinstance(each, Drawn):
            screen.part(each)
        else:
            screen.line(each)
    return screen.text()


def _all(report: RunsReport, lines: Words) -> list[RenderableType]:
    analyses = report.analyses
    shown = analyses[sentences.slowest(analyses)]
    parts: list[RenderableType] = []
    if len(analyses) > 1:
        parts += [lines.plain(sentences.ranks(analyses), "bold")]
    rank = sentences.rank_name(shown, sentences.slowest(analyses))
    prefix = f"rank {rank}: " if len(analyses) > 1 else ""
    head, *rest = sentences.verdict(shown)
    parts += [plain(prefix + lines.say(head), sentences.grade(shown).style), *map(lines.plain, rest)]
    facts = [lines.say(text) for text in sentences.about(shown)]
    facts += [f"torch {shown.torch}"] if shown.torch else []
    parts += [plain(" · ".join(facts), "dim")]
    for each in report.comparisons:
        parts += _comparison(each, lines)
    if len(analyses) > 1:
        parts += _listing(tables.ranks(analyses), lines, limit=None)
    parts += _parts(shown, lines)
    for number, diagnosis in enumerate(shown.diagnoses, 1):
        parts += _diagnosis(number, diagnosis, lines)
    parts += _listing(tables.operators(shown), lines, limit=lines.limit)
    parts += _listing(tables.kernels(shown), lines, limit=lines.limit)
    missing = [
        plain(lines.say(named(words.NOT_CHECKED, words.BECAUSE.format(name=name, why=why))), "dim")
        for name, why in sentences.unchecked_by_reason(shown)
    ]
    notes = [lines.note(words.NOTE, note) for note in shown.notes]
    return [*parts, "", *missing, *notes] if missing or notes else parts


def _listing(
    table: Table, lines: Words, *, limit: int | None, count: int | None = None
) -> list[RenderableType]:
    """The table under its title, without columns that are empty."""
    if not table.rows:
        return []
    shown = table.first(limit).without_empty_columns()
    return lines.titled(table.title, drawn(shown, lines, LONGEST_NAME), count, left_out=shown.left_out)


def _untitled(table: Table, lines: Words) -> list[RenderableType]:
    return _listing(table, lines, limit=lines.limit)[2:]


def _comparison(comparison: RunComparison, lines: Words) -> list[RenderableType]:
    found: list[RenderableType] = ["", lines.plain(words.COMPARISON, "bold")]
    found += [plain(f"  {lines.say(text)}") for text in sentences.comparison(comparison)]
    parts = _untitled(tables.compared_parts(comparison), lines)
    found += ["", *parts] if parts else []
    for _, title, pairs in tables.pairs_of(comparison):
        table = tables.pairs(title, pairs, says_exact=False)
        found += _listing(table, lines, limit=lines.limit, count=len(pairs))
    return found + [lines.note(words.NOTE, note) for note in comparison.notes]


def _parts(analysis: Analysis, lines: Words) -> list[RenderableType]:
    rows = sentences.parts(analysis)
    if not rows:
        return []
    title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
    column = max(lines.width(name) for _, name, _, _ in rows)
    found: list[RenderableType] = ["", lines.plain(title, "bold")]
    for part, name, seconds, share in rows:
        line = plain(f"  {lines.padded(name, column)}  ")
        full = round(_BAR * share)
        line.append("█" * full or "▏", words.PART_TONES[part].style)
        line.append(f"{' ' * (_BAR - max(full, 1))} {share:>6.1%}  {units.duration(seconds):>8}")
        found.append(line)
    return found


def _diagnosis(number: int, diagnosis: Diagnosis, lines: Words) -> list[RenderableType]:
    grade = words.SEVERITY[diagnosis.severity]
    head = plain(f"{number}. {lines.say(diagnosis.title)}", grade.style)
    head.append(f"  [{lines.say(grade.name)}, {diagnosis.id}]", "dim")
    found: list[RenderableType] = ["", head, plain(f"   {lines.say(diagnosis.summary)}")]
    found += _untitled(tables.evidence(diagnosis), lines)
    found += [plain(f"   → {lines.say(remedy)}") for remedy in diagnosis.remedies]
    gain = sentences.gain(diagnosis)
    return [*found, plain(f"   {lines.say(named(words.GAIN, gain))}", "dim")] if gain else found


def to_markdown(report: RunsReport, options: Options) -> str:
    """The report as Markdown."""
    return "\n".join(_MarkdownReport(report, options).all()) + "\n"


class _MarkdownReport:
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
            f"- {self._say(named(words.NOT_CHECKED, words.BECAUSE.format(name=code(name), why=why)))}"
            for name, why in sentences.unchecked_by_reason(shown)
        ]
        notes = [f"- {self._say(named(words.NOTE, note))}" for note in shown.notes]
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
        yield from (f"- {self._say(named(words.REMEDY, remedy))}" for remedy in diagnosis.remedies)
        gain = sentences.gain(diagnosis)
        if gain:
            yield f"- {self._say(named(words.GAIN, gain))}"

"""Readiness for spreadsheets and scripts: CSV with a row for each use on each device, and a workbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry.readiness.model import Readiness, Use, UseJudgement
from torchferry.readiness.report import words
from torchferry.readiness.report.tables import Overview, label, use_key
from torchferry.report.csv import csv_lines
from torchferry.report.findings.lists import ADVICE_COLUMNS
from torchferry.report.formats import Options
from torchferry.report.records import file_and_line
from torchferry.report.xlsx import Row, Sheet, workbook
from torchferry.text import Language, Text

Cell = str | int | float


def advice_text(judgement: UseJudgement, language: Language) -> str:
    """What can be done, with the code to write."""
    return "\n".join(
        "\n".join(filter(None, (each.text.in_language(language), each.code, each.source)))
        for each in judgement.advice
    )


def call_cells(use: Use, overview: Overview, language: Language) -> list[tuple[str, Text, Cell]]:
    """One use: the name of each field for programs and for people, and what it holds."""
    site = use.site
    inputs = use.signature.inputs
    file, line = file_and_line(site.place)
    varied = f" ({words.VARIED.in_language(language)})" if use.varied else ""
    return [
        ("operator", words.OPERATOR, use.operator),
        ("inputs", words.INPUTS, words.tensors(inputs, len(inputs)) + varied),
        ("strides", words.STRIDES, ", ".join(map(words.stride, inputs))),
        ("arguments", words.ARGUMENTS, words.arguments(use.signature)),
        ("outputs", words.OUTPUTS, words.tensors(use.signature.outputs, len(use.signature.outputs))),
        ("dtypes", words.DTYPES, words.dtypes([use])),
        ("calls", words.CALLS, use.calls),
        ("seconds", words.SECONDS, use.seconds),
        ("share", words.SHARE, round(overview.share([use]), 6)),
        ("phase", words.PHASE_COLUMN, words.PHASE[site.phase].in_language(language)),
        ("module", words.MODULE, site.module),
        ("file", words.FILE, file),
        ("line", words.PLACE, line or ""),
        ("node", words.NODE, site.node),
        ("inside", words.INSIDE, site.inside),
    ]


def judgement_cells(judgement: UseJudgement | None, language: Language) -> list[tuple[str, Text, Cell]]:
    """One judgement: the name of each field for programs and for people, and what it holds."""
    support = words.SUPPORT[judgement.support].name.in_language(language) if judgement else ""
    return [
        ("support", words.SUPPORT_COLUMN, support),
        ("reason", words.REASON, judgement.reason.in_language(language) if judgement else ""),
        ("moved_bytes", words.MOVED, judgement.moved_bytes if judgement else ""),
        ("advice", words.ADVICE, advice_text(judgement, language) if judgement else ""),
    ]


COLUMNS = (
    "device", "operator", "inputs", "strides", "arguments", "outputs", "dtypes", "calls", "seconds", "share", "phase",
    "module", "file", "line", "node", "inside", "support", "reason", "moved_bytes", "advice",
)  # fmt: skip


def to_csv(readinesses: Sequence[Readiness], options: Options) -> Iterator[str]:
    """One row for each judgement; support and phase are named as programs know them."""
    rows = ([cells[name] for name in COLUMNS] for cells in _rows(Overview(readinesses), options.language))
    yield from csv_lines([COLUMNS])
    yield from csv_lines(rows, mark=False)


def _rows(overview: Overview, language: Language) -> Iterator[dict[str, Cell]]:
    """Every use on every device, those of the worst operators first; support and phase have the same names always."""
    for row in overview.operators:
        for readiness, judgements in zip(overview.readinesses, row.judgements, strict=True):
            for judgement in judgements:
                use = judgement.use
                cells = [*call_cells(use, overview, language), *judgement_cells(judgement, language)]
                yield {
                    **{name: value for name, _, value in cells},
                    "device": label(readiness),
                    "support": judgement.support.value,
                    "phase": use.site.phase.value,
                }


UNSUPPORTED = "unsupported_op"
_WIDTHS = {
    "operator": 40, "inputs": 50, "strides": 36, "arguments": 40, "outputs": 40, "module": 32, "file": 32,
    "node": 26, "inside": 30,
}  # fmt: skip


def to_xlsx(readinesses: Sequence[Readiness], options: Options) -> bytes:
    """The workbook; what is not supported comes first, in the guide's columns."""
    overview = Overview(readinesses)
    say = options.say
    extra = [words.VENDOR, words.SUPPORT_COLUMN, words.DTYPES, words.CALLS, words.SHARE, words.MODULE]
    columns = [*zip(ADVICE_COLUMNS, (40, 10, 10, 40, 90), strict=True), *((say(text), 18) for text in extra)]
    facts = [(say(words.FACT), 34), (say(words.VALUE), 100)]
    return workbook(
        [
            Sheet(UNSUPPORTED, columns, _unsupported(overview, options)),
            Sheet(say(words.SUMMARY), facts, _summary(overview, options)),
            _operators_sheet(overview, options),
            _calls_sheet(overview, options),
        ]
    )


def _unsupported(overview: Overview, options: Options) -> Iterator[Row]:
    """In the guide's columns; a line of code that calls an operator stands once for each device."""
    for readiness in overview.readinesses:
        for problem in overview.problems(readiness):
            by_place: dict[str, list[Cell]] = {}
            for judgement in problem.judgements:
                use = judgement.use
                if use.site.place in by_place:
                    row = by_place[use.site.place]
                    row[8] = int(row[8]) + use.calls
                    row[9] = float(row[9]) + overview.share_on(readiness, [judgement])
                    continue
                file, line = file_and_line(use.site.place)
                tips = [options.say(judgement.reason), advice_text(judgement, options.language)]
                by_place[use.site.place] = [
                    file,
                    line or "",
                    line or "",
                    problem.operator,
                    "\n".join(filter(None, tips)),
                    label(readiness),
                    options.say(words.SUPPORT[problem.support].name),
                    words.dtypes([use]),
                    use.calls,
                    overview.share_on(readiness, [judgement]),
                    use.site.module,
                ]
            yield from by_place.values()


def _summary(overview: Overview, options: Options) -> Iterator[Row]:
    say = options.say
    for readiness in overview.readinesses:
        yield [label(readiness), say(words.verdict(readiness))]
    for readiness in overview.readinesses:
        for support, judgements in overview.by_support(readiness).items():
            operators = len({judgement.use.operator for judgement in judgements})
            yield [f"{label(readiness)}: {say(words.SUPPORT[support].name)}", operators]
    for name, value in words.facts(overview.capture, len(overview.uses)):
        yield [say(name), value]
    for note in overview.capture.notes:
        yield [say(words.NOTE), say(words.note(note))]


def _operators_sheet(overview: Overview, options: Options) -> Sheet:
    say = options.say
    columns = [
        (say(words.OPERATOR), 44),
        (say(words.CALLS), 12),
        (say(words.SECONDS), 14),
        (say(words.SHARE), 12),
        (say(words.DTYPES), 24),
        *((name, 18) for name in overview.labels),
    ]
    rows: Iterator[Row] = (
        [
            row.operator,
            row.calls,
            row.seconds,
            round(row.share, 6),
            words.dtypes(row.uses),
            *(say(words.SUPPORT[support].name) if support else words.ABSENT for support in row.supports),
        ]
        for row in overview.operators
    )
    return Sheet(say(words.OPERATORS), columns, rows)


def _calls_sheet(overview: Overview, options: Options) -> Sheet:
    say = options.say
    if not overview.uses:
        return Sheet(say(words.CALLS_SHEET), [(say(words.OPERATOR), 44)], [])
    cells = call_cells(overview.uses[0], overview, options.language)
    columns = [
        *((say(text), _WIDTHS.get(name, 12)) for name, text, _ in cells),
        *(
            (say(Text(f"{name}: {text.en}", f"{name}：{text.zh}")), 24)
            for name in overview.labels
            for _, text, _ in judgement_cells(None, options.language)
        ),
    ]
    judged = [{use_key(each.use): each for each in one.judgements} for one in overview.readinesses]
    rows: list[Row] = []
    for use in (use for row in overview.operators for use in row.uses):
        cells = call_cells(use, overview, options.language)
        for column in judged:
            cells += judgement_cells(column.get(use_key(use)), options.language)
        rows.append([value for _, _, value in cells])
    return Sheet(say(words.CALLS_SHEET), columns, rows)

"""CSV: one row for each use of an operator on each device, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchferry.ops.model import Use
from torchferry.ops.readiness import Judgement, Readiness
from torchferry.ops.report import sentences, words
from torchferry.ops.report.tables import Overview, label, use_key
from torchferry.report.lists import ADVICE_COLUMNS, without_times
from torchferry.report.options import Options
from torchferry.report.safe import looks_like_formula, xml_text
from torchferry.report.xlsx import MAX_ROWS, Columns, Row, add_sheet
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from openpyxl import Workbook

# Cells for spreadsheets: what is said of one use of an operator, and of one judgement.

Cell = str | int | float


def split_place(place: str) -> tuple[str, int]:
    """File and line of train.py:34; line 0 where there is none."""
    file, colon, line = place.rpartition(":")
    return (file, int(line)) if colon and line.isascii() and line.isdigit() and len(line) < 10 else (place, 0)


def advice_text(judgement: Judgement, language: Language) -> str:
    """What can be done, with the code to write."""
    return "\n".join(
        "\n".join(filter(None, (each.text.in_language(language), each.code, each.source)))
        for each in judgement.advice
    )


def call_cells(use: Use, overview: Overview, language: Language) -> list[tuple[str, Text, Cell]]:
    """One use: the name of each field for programs and for people, and what it holds."""
    site = use.site
    inputs = use.signature.inputs
    file, line = split_place(site.place)
    varied = f" ({words.VARIED.in_language(language)})" if use.varied else ""
    return [
        ("operator", words.OPERATOR, use.operator),
        ("inputs", words.INPUTS, sentences.tensors(inputs, len(inputs)) + varied),
        ("strides", words.STRIDES, ", ".join(map(sentences.stride, inputs))),
        ("arguments", words.ARGUMENTS, sentences.arguments(use.signature)),
        ("outputs", words.OUTPUTS, sentences.tensors(use.signature.outputs, len(use.signature.outputs))),
        ("dtypes", words.DTYPES, sentences.dtypes([use])),
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


def judgement_cells(judgement: Judgement | None, language: Language) -> list[tuple[str, Text, Cell]]:
    """One judgement, likewise."""
    support = words.SUPPORT[judgement.support].in_language(language) if judgement else ""
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


def to_csv(readinesses: Sequence[Readiness], language: Language) -> bytes:
    """The judgements as CSV in UTF-8, with the mark by which Excel knows it."""
    import csv
    import io

    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(COLUMNS)
    for cells in _rows(Overview(readinesses), language):
        writer.writerow([_cell(cells[name]) for name in COLUMNS])
    return output.getvalue().encode("utf-8-sig")


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


def _cell(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    text = xml_text(value)
    return "'" + text if looks_like_formula(text) else text


# An Excel workbook: the guide's list of operators that are not supported, a summary, all operators,
# all calls.

UNSUPPORTED = Text("unsupported_op", "unsupported_op")
_WIDTHS = {
    "operator": 40, "inputs": 50, "strides": 36, "arguments": 40, "outputs": 40, "module": 32, "file": 32,
    "node": 26, "inside": 30,
}  # fmt: skip


def to_xlsx(readinesses: Sequence[Readiness], language: Language) -> bytes:
    """The workbook; the same readiness gives the same bytes."""
    import io

    from openpyxl import Workbook

    overview = Overview(readinesses)
    options = Options(language)
    book = Workbook(write_only=True)
    columns = [
        (Text(name, name), width) for name, width in zip(ADVICE_COLUMNS, (40, 10, 10, 40, 90), strict=True)
    ]
    extra = [words.VENDOR, words.SUPPORT_COLUMN, words.DTYPES, words.CALLS, words.SHARE, words.MODULE]
    columns += [(text, 18) for text in extra]
    add_sheet(book, UNSUPPORTED, columns, _limited(_unsupported(overview, options)), options)
    add_sheet(
        book, words.SUMMARY, [(words.FACT, 34), (words.VALUE, 100)], _summary(overview, options), options
    )
    _operators_sheet(book, overview, options)
    _calls_sheet(book, overview, options)
    output = io.BytesIO()
    book.save(output)
    return without_times(output.getvalue())


def _limited(rows: Iterator[Row]) -> Iterator[Row]:
    from itertools import islice

    return islice(rows, MAX_ROWS)


def _unsupported(overview: Overview, options: Options) -> Iterator[Row]:
    """In the guide's columns; a line of code that calls an operator stands once for each device."""
    for readiness in overview.readinesses:
        for problem in overview.problems(readiness):
            by_place: dict[str, Row] = {}
            for judgement in problem.judgements:
                use = judgement.use
                if use.site.place in by_place:
                    row = by_place[use.site.place]
                    row[8] = int(row[8]) + use.calls
                    row[9] = float(row[9]) + overview.share_on(readiness, [judgement])
                    continue
                file, line = split_place(use.site.place)
                tips = [options.say(judgement.reason), advice_text(judgement, options.language)]
                by_place[use.site.place] = [
                    file,
                    line or "",
                    line or "",
                    problem.operator,
                    "\n".join(filter(None, tips)),
                    label(readiness),
                    options.say(words.SUPPORT[problem.support]),
                    sentences.dtypes([use]),
                    use.calls,
                    overview.share_on(readiness, [judgement]),
                    use.site.module,
                ]
            yield from by_place.values()


def _summary(overview: Overview, options: Options) -> Iterator[Row]:
    say = options.say
    for readiness in overview.readinesses:
        yield [label(readiness), say(sentences.verdict(readiness))]
    for readiness in overview.readinesses:
        for support, judgements in overview.by_support(readiness).items():
            operators = len({judgement.use.operator for judgement in judgements})
            yield [f"{label(readiness)}: {say(words.SUPPORT[support])}", operators]
    for name, value in sentences.facts(overview.capture, len(overview.uses)):
        yield [say(name), value]
    for note in overview.capture.notes:
        yield [say(words.NOTE), say(sentences.note(note))]


def _operators_sheet(book: Workbook, overview: Overview, options: Options) -> None:
    columns: Columns = [
        (words.OPERATOR, 44),
        (words.CALLS, 12),
        (words.SECONDS, 14),
        (words.SHARE, 12),
        (words.DTYPES, 24),
        *((Text(name, name), 18) for name in overview.labels),
    ]
    rows: Iterator[Row] = (
        [
            row.operator,
            row.calls,
            row.seconds,
            round(row.share, 6),
            sentences.dtypes(row.uses),
            *(options.say(words.SUPPORT[support]) if support else words.ABSENT for support in row.supports),
        ]
        for row in overview.operators
    )
    add_sheet(book, words.OPERATORS, columns, _limited(rows), options)


def _calls_sheet(book: Workbook, overview: Overview, options: Options) -> None:
    if not overview.uses:
        add_sheet(book, words.CALLS_SHEET, [(words.OPERATOR, 44)], [], options)
        return
    columns: Columns = [
        *(
            (text, _WIDTHS.get(name, 12))
            for name, text, _ in call_cells(overview.uses[0], overview, options.language)
        ),
        *(
            (Text(f"{name}: {text.en}", f"{name}：{text.zh}"), 24)
            for name in overview.labels
            for _, text, _ in judgement_cells(None, options.language)
        ),
    ]
    add_sheet(book, words.CALLS_SHEET, columns, _limited(_calls(overview, options)), options)


def _calls(overview: Overview, options: Options) -> Iterator[Row]:
    judged = [{use_key(each.use): each for each in one.judgements} for one in overview.readinesses]
    for row in overview.operators:
        for use in row.uses:
            cells = call_cells(use, overview, options.language)
            for column in judged:
                cells += judgement_cells(column.get(use_key(use)), options.language)
            yield [value for _, _, value in cells]

"""An analysis for the terminal: the verdict first, where the time goes, each finding with proof and remedy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torchferry import units
from torchferry.perf.compare.model import Comparison, Cost, Match, OperatorPair
from torchferry.perf.model import Analysis, Diagnosis, Part
from torchferry.perf.report import sentences, words
from torchferry.perf.report.sentences import Report
from torchferry.report.formats import Options
from torchferry.report.safe import shortened
from torchferry.report.terminal import Screen, Words, plain
from torchferry.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType

# Pieces of the text format.

_LONGEST_CELL = 100  # names of kernels of C++ templates run to thousands of characters


def listing(
    words: Words, heads: Sequence[Text], rows: Sequence[Sequence[str]], *, numbers: int
) -> list[RenderableType]:
    """A table whose last columns hold numbers; columns that are empty are left out, rows beyond the limit counted."""
    shown = rows[: words.limit]
    kept = [at for at in range(len(heads)) if any(row[at] for row in shown)]
    first = len(heads) - numbers
    table = words.table([heads[at] for at in kept if at < first], [heads[at] for at in kept if at >= first])
    for row in shown:
        table.add_row(*(plain(shortened(row[at], _LONGEST_CELL)) for at in kept))
    return [table, *words.left_out(len(rows))] if shown else []


# Two runs side by side, for the terminal.


def comparison_lines(comparison: Comparison, lines: Words) -> list[RenderableType]:
    """The verdict, the parts side by side, and the operators."""
    found: list[RenderableType] = ["", lines.plain(words.COMPARISON, "bold")]
    found += [plain(f"  {lines.say(text)}") for text in sentences.comparison(comparison)]
    found += _compared_parts(comparison, lines)
    found += _pairs(words.PAIRS, comparison.pairs, lines)
    found += _pairs(words.ONLY_COMPARED, comparison.only_compared, lines)
    found += _pairs(words.ONLY_BASELINE, comparison.only_baseline, lines)
    return found + [lines.note(words.NOTE, note) for note in comparison.notes]


def _compared_parts(comparison: Comparison, lines: Words) -> list[RenderableType]:
    rows = [
        (
            lines.say(sentences.part_names(comparison)[part]),
            units.duration(other),
            units.duration(mine),
            units.signed_duration(mine - other),
        )
        for part, other, mine in sentences.part_rows(comparison)
    ]
    heads = (words.PER_STEP, words.BASELINE, words.COMPARED, words.MORE)
    return ["", *listing(lines, heads, rows, numbers=3)] if rows else []


def _pairs(title: Text, pairs: Sequence[OperatorPair], lines: Words) -> list[RenderableType]:
    if not pairs:
        return []
    rows = [_row(pair, lines) for pair in pairs]
    heads = (
        words.OPERATOR,
        words.SHAPES,
        words.HOW,
        words.PLACE,
        words.BASELINE,
        words.COMPARED,
        words.MORE,
        words.RATIO,
    )
    return ["", plain(f"{lines.say(title)} ({len(pairs)})", "bold"), *listing(lines, heads, rows, numbers=4)]


def _row(pair: OperatorPair, lines: Words) -> tuple[str, ...]:
    in_both = pair.baseline is not None and pair.compared is not None
    return (
        names(pair),
        shapes(pair),
        lines.say(words.MATCH[pair.match]) if in_both and pair.match is not Match.EXACT else "",
        sentences.place(pair.place),
        cost(pair.baseline),
        cost(pair.compared),
        units.signed_duration(pair.more) if in_both else "",
        f"{pair.ratio:.2f}" if pair.ratio is not None else "",
    )


def names(pair: OperatorPair) -> str:
    """In both runs, where they differ."""
    other = pair.baseline_operator
    return f"{pair.operator} = {other}" if other and other != pair.operator else pair.operator


def shapes(pair: OperatorPair) -> str:
    """Shapes and types, and the baseline's where they differ."""
    mine = " ".join(filter(None, [pair.shapes, pair.dtypes]))
    other = " ".join(filter(None, [pair.baseline_shapes, pair.baseline_dtypes]))
    return f"{mine} = {other}" if other and other != mine else mine


def cost(found: Cost | None) -> str:
    """Time and calls."""
    return f"{units.duration(found.seconds)} ×{found.calls:g}" if found is not None else ""


PLAIN_WIDTH = 120
LEAST_WIDTH = 60  # tables in less than that show nothing: long lines are better
_BAR = 40
_PART_STYLES = {
    Part.COMPUTE: "green",
    Part.COMMUNICATION: "magenta",
    Part.COPY: "cyan",
    Part.MOVE: "blue",
    Part.LOADER: "red",
    Part.HOST: "yellow",
    Part.OTHER: "dim",
}


def to_text(report: Report, options: Options) -> str:
    """For a terminal, or without colours."""
    from rich.table import Table

    wide = replace(options, width=max(options.width or PLAIN_WIDTH, LEAST_WIDTH))
    screen = Screen(wide, PLAIN_WIDTH)
    for each in _all(report, Words(options, report.top)):
        if isinstance(each, Table):
            screen.part(each)
        else:
            screen.line(each)
    return screen.text()


def _all(report: Report, lines: Words) -> list[RenderableType]:
    analyses = report.analyses
    shown = sentences.slowest(analyses)
    parts: list[RenderableType] = []
    if len(analyses) > 1:
        parts += [lines.plain(sentences.ranks(analyses), "bold")]
    parts += _verdict(analyses[shown], lines, _prefix(analyses, shown))
    for each in report.comparisons:
        parts += comparison_lines(each, lines)
    if len(analyses) > 1:
        parts += _ranks(analyses, lines)
    return parts + _details(analyses[shown], lines)


def _prefix(analyses: Sequence[Analysis], shown: int) -> str:
    return f"rank {sentences.rank_name(analyses[shown], shown)}: " if len(analyses) > 1 else ""


def _verdict(analysis: Analysis, lines: Words, prefix: str) -> list[RenderableType]:
    head, *rest = sentences.verdict(analysis)
    found: list[RenderableType] = [plain(prefix + lines.say(head), sentences.grade(analysis).style)]
    found += [lines.plain(text) for text in rest]
    about = [sentences.steps(analysis), sentences.device(analysis)]
    facts = [lines.say(text) for text in about if text is not None and text.en]
    facts += [f"torch {analysis.torch}"] if analysis.torch else []
    return [*found, plain(" · ".join(facts), "dim")]


def _ranks(analyses: Sequence[Analysis], lines: Words) -> list[RenderableType]:
    present = [part for part in Part if any(each.parts.get(part) for each in analyses)]
    names = words.PART_OF_HOST if all(each.is_host_only for each in analyses) else words.PART
    table = lines.table(
        [words.RANK], [words.STEP, words.WORKS, *(names[part] for part in present)], [words.MAIN_FINDING]
    )
    for position, each in enumerate(analyses):
        main = lines.say(each.diagnoses[0].title) if each.diagnoses else ""
        table.add_row(
            sentences.rank_name(each, position),
            units.duration(sentences.step_seconds(each)),
            units.duration(sentences.own_seconds(each)),
            *(units.percent(each.share(part)) for part in present),
            plain(main),
        )
    return lines.titled(words.RANKS, table)


def _details(analysis: Analysis, lines: Words) -> list[RenderableType]:
    found = _parts(analysis, lines)
    for number, diagnosis in enumerate(analysis.diagnoses, 1):
        found += _diagnosis(number, diagnosis, lines)
    return [*found, *_operators(analysis, lines), *_kernels(analysis, lines), *_end(analysis, lines)]


def _parts(analysis: Analysis, lines: Words) -> list[RenderableType]:
    """A bar for each part."""
    rows = sentences.parts(analysis)
    if not rows:
        return []
    title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
    column = max(lines.width(name) for _, name, _, _ in rows)
    found: list[RenderableType] = ["", lines.plain(title, "bold")]
    for part, name, seconds, share in rows:
        line = plain(f"  {lines.padded(name, column)}  ")
        full = round(_BAR * share)
        line.append("█" * full or "▏", _PART_STYLES[part])
        line.append(f"{' ' * (_BAR - max(full, 1))} {share:>6.1%}  {units.duration(seconds):>8}")
        found.append(line)
    return found


def _diagnosis(number: int, diagnosis: Diagnosis, lines: Words) -> list[RenderableType]:
    grade = words.SEVERITY[diagnosis.severity]
    head = plain(f"{number}. {lines.say(diagnosis.title)}", grade.style)
    head.append(f"  [{lines.say(grade.name)}, {diagnosis.id}]", "dim")
    found: list[RenderableType] = ["", head, plain(f"   {lines.say(diagnosis.summary)}")]
    if diagnosis.evidence:
        found += _evidence(diagnosis, lines)
    found += [plain(f"   → {lines.say(remedy)}") for remedy in diagnosis.remedies]
    gain = sentences.gain(diagnosis)
    return [*found, plain(f"   {lines.say(words.GAIN)}: {lines.say(gain)}", "dim")] if gain else found


def _evidence(diagnosis: Diagnosis, lines: Words) -> list[RenderableType]:
    rows = [
        (
            lines.say(each.what),
            lines.say(each.detail),
            sentences.place(each.place),
            f"{each.count:,}" if each.count else "",
            units.duration(each.seconds) if each.seconds else "",
            units.percent(each.share) if each.share else "",
        )
        for each in diagnosis.evidence
    ]
    heads = (words.WHAT, words.DETAIL, words.PLACE, words.COUNT, words.TIME, words.SHARE)
    return listing(lines, heads, rows, numbers=3)


def _operators(analysis: Analysis, lines: Words) -> list[RenderableType]:
    if not analysis.operators:
        return []
    has_device = not analysis.is_host_only
    heads = [words.OPERATOR, words.SHAPES, words.DTYPES, words.PLACE, words.CALLS, words.HOST_TIME]
    heads += [words.DEVICE_TIME] if has_device else []
    rows = [
        (
            each.operator,
            each.shapes,
            each.dtypes,
            sentences.place(each.place),
            f"{each.calls:,}",
            units.duration(each.host_seconds) if each.host_seconds else "",
            *([units.duration(each.device_seconds)] if has_device else []),
            units.percent(each.device_seconds / analysis.seconds) if analysis.seconds else "",
        )
        for each in analysis.operators
    ]
    table = listing(lines, [*heads, words.SHARE], rows, numbers=len(heads) - 3)
    return ["", lines.plain(words.OPERATORS, "bold"), *table]


def _kernels(analysis: Analysis, lines: Words) -> list[RenderableType]:
    if not analysis.kernels:
        return []
    rows = [
        (
            each.name,
            lines.say(words.SPAN_KIND[each.kind]),
            each.operator,
            f"{each.calls:,}",
            units.duration(each.seconds),
        )
        for each in analysis.kernels
    ]
    heads = (words.KERNEL, words.KIND, words.LAUNCHED_BY, words.CALLS, words.TIME)
    return ["", lines.plain(words.KERNELS, "bold"), *listing(lines, heads, rows, numbers=2)]


def _end(analysis: Analysis, lines: Words) -> list[RenderableType]:
    """What could not be looked at, and why."""
    missing = [
        plain(f"{lines.say(words.NOT_CHECKED)}: {name} ({lines.say(why)})", "dim")
        for name, why in sentences.unchecked_by_reason(analysis)
    ]
    notes = [lines.note(words.NOTE, note) for note in analysis.notes]
    return ["", *missing, *notes] if missing or notes else []

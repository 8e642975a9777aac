"""An analysis as one self-contained page: verdict, findings, timeline, tables, memory. The script draws and sorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from pathlib import PurePath

from torchferry import units
from torchferry.perf.compare.model import Comparison, OperatorPair
from torchferry.perf.model import Analysis, Diagnosis, Evidence, Part, Severity, in_words
from torchferry.perf.report import sentences, words
from torchferry.perf.report.html_memory import memory_section
from torchferry.perf.report.html_parts import prose, quiet
from torchferry.perf.report.html_tables import Cell, Column, kernels_section, long_table, operators_section
from torchferry.perf.report.html_timeline import timeline_section
from torchferry.perf.report.sentences import Report
from torchferry.perf.report.text import names, shapes
from torchferry.report.frame import Page, framed
from torchferry.report.html import asset
from torchferry.report.markup import both, escaped, row, table
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

# The top of the page: the verdict, where the time goes, ranks and steps beside each other.

TONES = {Severity.HIGH: "unsupported", Severity.MEDIUM: "todo", Severity.LOW: "risk"}
PART_TONES = {
    Part.COMPUTE: "change",
    Part.COMMUNICATION: "unknown",
    Part.COPY: "risk",
    Part.MOVE: "move",
    Part.LOADER: "unsupported",
    Part.HOST: "todo",
    Part.OTHER: "info",
}  # the colours of the other reports
_MOST_STEPS = 200
_WIDTH, _HEIGHT = 1000, 120


def overview(analyses: Sequence[Analysis], shown: Analysis) -> str:
    """The verdict in large, and a bar of what the time goes to."""
    first = shown.diagnoses[0] if shown.diagnoses else None
    tone = "change"
    if first and first.severity is not Severity.LOW:
        tone = TONES[Severity.HIGH if first.is_bottleneck else Severity.MEDIUM]
    head, *rest = sentences.verdict(shown)
    said = [*rest, *([sentences.ranks(analyses)] if len(analyses) > 1 else [])]
    about = [text for text in (sentences.steps(shown), sentences.device(shown)) if text and text.en]
    return (
        f'<div class="card {tone}">{both(head, "h2")}{"".join(both(text, "p") for text in said)}'
        f"{_shares(shown)}{''.join(quiet(text) for text in about)}</div>"
    )


def _shares(analysis: Analysis) -> str:
    rows = sentences.parts(analysis)
    if not rows:
        return ""
    title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
    entries = "".join(
        f'<div class="entry {PART_TONES[part]}"><dt>{both(name)}</dt>'
        f"<dd>{units.percent(share)} <span class='quiet'>{escaped(units.duration(seconds))}</span></dd></div>"
        for part, name, seconds, share in rows
    )
    return f'{both(title, "h3")}{_bar(rows)}<dl class="legend">{entries}</dl>'


def _bar(rows: Iterable[tuple[Part, Text, float, float]]) -> str:
    drawn, at = [], 0.0
    for part, _, _, share in rows:
        drawn.append(
            f'<rect class="{PART_TONES[part]}" x="{at:.2f}" width="{1000 * share:.2f}" height="10"/>'
        )
        at += 1000 * share
    return (
        '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(drawn)}</svg>"
    )


def ranks_section(analyses: Sequence[Analysis]) -> str:
    """One row for each process."""
    present = [part for part in Part if any(each.parts.get(part) for each in analyses)]
    rows = [
        row(
            [
                escaped(sentences.rank_name(each, position)),
                both(each.diagnoses[0].title) if each.diagnoses else "",
                escaped(units.duration(sentences.step_seconds(each))),
                escaped(units.duration(sentences.own_seconds(each))),
                *(units.percent(each.share(part)) for part in present),
            ],
            kind="slowest" if position == sentences.slowest(analyses) else "",
        )
        for position, each in enumerate(analyses)
    ]
    names = words.PART_OF_HOST if all(each.is_host_only for each in analyses) else words.PART
    heads = [words.RANK, words.MAIN_FINDING, words.STEP, words.WORKS, *(names[part] for part in present)]
    return f'<section id="ranks"><h2>{both(words.RANKS)}</h2>{table(heads, rows, "rules ranks")}</section>'


def steps_section(analysis: Analysis) -> str:
    """A column for each step, divided as its time is."""
    steps = analysis.steps[:_MOST_STEPS]
    if len(steps) < 2:
        return ""
    longest = max(step.seconds for step in steps) or 1.0
    wide = _WIDTH / len(steps)
    columns = "".join(
        f"<g><title>{escaped(f'{step.number}: {units.duration(step.seconds)}')}</title>"
        f"{_column(step.parts, number * wide, wide * 0.9, longest)}</g>"
        for number, step in enumerate(steps)
    )
    more = len(analysis.steps) - len(steps)
    left = quiet(words.AND_MORE.format(count=more)) if more else ""
    axis = (
        f'<p class="quiet axis"><span>{steps[0].number}</span><span>{escaped(units.duration(longest))}</span>'
        f"<span>{steps[-1].number}</span></p>"
    )
    return (
        f'<section id="steps"><h2>{both(words.STEPS)}</h2><svg class="bar columns" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-label="{escaped(words.STEPS.en)}">{columns}</svg>{axis}{left}</section>'
    )


def _column(parts: Mapping[Part, float], left: float, wide: float, longest: float) -> str:
    drawn, bottom = [], float(_HEIGHT)
    for part, seconds in parts.items():
        high = _HEIGHT * seconds / longest
        bottom -= high
        drawn.append(
            f'<rect class="{PART_TONES[part]}" x="{left:.1f}" y="{bottom:.1f}" width="{wide:.1f}" height="{high:.1f}"/>'
        )
    return "".join(drawn)


# The page's findings: a card for each bottleneck, with its proof, its remedy and what that saves.

_HEADS = (words.WHAT, words.DETAIL, words.PLACE, words.COUNT, words.TIME, words.SHARE)
_OPEN = 20  # rows of evidence that are seen at once


def findings_section(analysis: Analysis) -> str:
    """All cards, the greatest first."""
    cards = "".join(
        _card(number, diagnosis, bool(analysis.timeline))
        for number, diagnosis in enumerate(analysis.diagnoses, 1)
    )
    nothing = "" if cards else quiet(words.NO_FINDINGS)
    return f'<section id="findings"><h2>{both(words.FINDINGS)}</h2>{nothing}{cards}</section>'


def _card(number: int, diagnosis: Diagnosis, has_timeline: bool) -> str:
    severity = diagnosis.severity
    badge = f'<span class="badge {TONES[severity]}">{both(words.SEVERITY[severity])}</span>'
    remedies = "".join(f"<li>{prose(remedy)}</li>" for remedy in diagnosis.remedies)
    gain = sentences.gain(diagnosis)
    saved = f'<p class="quiet">{both(words.GAIN)}: {prose(gain)}</p>' if gain else ""
    return (
        f'<article class="finding {TONES[severity]}" id="finding-{number}"><header><h3>{both(diagnosis.title)}</h3>{badge}'
        f'<span class="rule">{escaped(diagnosis.id)}</span></header>{prose(diagnosis.summary, "p")}'
        f'<ul class="remedies">{remedies}</ul>{saved}{_evidence(diagnosis, has_timeline)}</article>'
    )


def _evidence(diagnosis: Diagnosis, has_timeline: bool) -> str:
    if not diagnosis.evidence:
        return ""
    has_detail = any(each.detail for each in diagnosis.evidence)
    has_place = any(each.place for each in diagnosis.evidence)
    kept = [True, has_detail, has_place, True, True, True]
    heads = list(compress(_HEADS, kept))
    rows = [row(list(compress(_cells(each, has_timeline), kept))) for each in diagnosis.evidence]
    shown = table(heads, rows[:_OPEN], "rules evidence")
    if len(rows) <= _OPEN:
        return shown
    more = both(words.AND_MORE.format(count=len(rows) - _OPEN), "summary")
    return f"{shown}<details>{more}{table(heads, rows[_OPEN:], 'rules evidence')}</details>"


def _place(place: str) -> str:
    if not place:
        return ""
    return f'<code title="{escaped(one_line(place))}">{escaped(one_line(sentences.place(place)))}</code>'


def _cells(each: Evidence, has_timeline: bool) -> list[str]:
    name = one_line(in_words(each.what, "en"))
    what = both(each.what) if isinstance(each.what, Text) else f"<code>{escaped(name)}</code>"
    if has_timeline and each.example is not None:
        what += (
            f' <button type="button" class="plain jump" data-at="{each.example:.9f}" data-name="{escaped(name)}" '
            f"hidden>{both(words.SHOW_IN_TIMELINE)}</button>"
        )
    return [
        what,
        both(each.detail) if isinstance(each.detail, Text) else escaped(one_line(each.detail)),
        _place(each.place),
        f"{each.count:,}" if each.count else "",
        escaped(units.duration(each.seconds)) if each.seconds else "",
        units.percent(each.share) if each.share else "",
    ]


# The page's comparison with the baseline: the parts side by side, and operator by operator.


def comparison_section(comparison: Comparison, number: int) -> str:
    """One rank's."""
    said = "".join(both(text, "p") for text in sentences.comparison(comparison))
    notes = "".join(quiet(note) for note in comparison.notes)
    tables = "".join(
        f"<h3>{both(title)}</h3>{_pairs(f'{name}-{number}', pairs)}"
        for name, title, pairs in (
            ("pairs", words.PAIRS, comparison.pairs),
            ("only-compared", words.ONLY_COMPARED, comparison.only_compared),
            ("only-baseline", words.ONLY_BASELINE, comparison.only_baseline),
        )
        if pairs
    )
    return (
        f'<section class="comparison" id="comparison-{number}"><h2>{both(words.COMPARISON)}</h2>{said}{_parts(comparison)}'
        f"{tables}{notes}</section>"
    )


def _parts(comparison: Comparison) -> str:
    rows = [
        row(
            [
                both(sentences.part_names(comparison)[part]),
                escaped(units.duration(other)),
                escaped(units.duration(mine)),
                escaped(units.signed_duration(mine - other)),
            ]
        )
        for part, other, mine in sentences.part_rows(comparison)
    ]
    heads = [words.PER_STEP, words.BASELINE, words.COMPARED, words.MORE]
    return table(heads, rows, "rules sides") if rows else ""


def _pairs(anchor: str, pairs: Sequence[OperatorPair]) -> str:
    columns = [
        Column(words.OPERATOR, "code"), Column(words.SHAPES, "text"), Column(words.HOW, "both"),
        Column(words.PLACE, "code"), Column(Text("Calls, baseline", "基线调用次数"), "count"), Column(words.CALLS, "count"),
        Column(words.BASELINE, "time"), Column(words.COMPARED, "time"), Column(words.MORE, "more"),
        Column(words.RATIO, "ratio"),
    ]  # fmt: skip
    return long_table(anchor, columns, [_row(pair) for pair in pairs], 8)


def _row(pair: OperatorPair) -> list[Cell]:
    other, mine = pair.baseline, pair.compared
    return [
        names(pair),
        shapes(pair),
        words.MATCH[pair.match] if other and mine else None,
        sentences.place(pair.place),
        other.calls if other else None,
        mine.calls if mine else None,
        other.seconds if other else None,
        mine.seconds if mine else None,
        pair.more,
        pair.ratio,
    ]


_PACKAGE = "torchferry.perf.report"
_SCRIPTS = ("tables.js", "timeline.js", "jumps.js")


def to_html(report: Report, language: Language = "en") -> str:
    """The page; of several ranks it shows the slowest in full."""
    shown = report.analyses[sentences.slowest(report.analyses)]
    name = one_line(_name(shown))
    page = Page(
        name,
        _heading(report, name),
        overview(report.analyses, shown),
        _sections(report, shown),
        asset("analyze.css", _PACKAGE),
        "\n".join([asset("elements.js"), *(asset(script, _PACKAGE) for script in _SCRIPTS)]),
    )
    return framed(page, language)


def _sections(report: Report, shown: Analysis) -> Iterator[str]:
    if len(report.analyses) > 1:
        yield ranks_section(report.analyses)
    yield findings_section(shown)
    for number, comparison in enumerate(report.comparisons):
        yield comparison_section(comparison, number)
    yield timeline_section(shown)
    yield steps_section(shown)
    yield operators_section(shown)
    yield kernels_section(shown)
    yield memory_section(shown)
    yield _about(shown)


def _name(analysis: Analysis) -> str:
    """The program, or else the file."""
    if analysis.command:
        return " ".join(analysis.command)
    return PurePath(analysis.sources[0]).name if analysis.sources else "TorchFerry"


def _heading(report: Report, name: str) -> str:
    if not report.comparisons:
        return escaped(name)
    baseline = report.comparisons[0].baseline.sources
    other = PurePath(baseline[0]).name if baseline else ""
    return f'{escaped(name)} <span class="arrow">↔</span> {escaped(one_line(other))}'


def _about(analysis: Analysis) -> str:
    """Where the figures come from, what was looked for and what could not be."""
    facts = [
        *((words.FILE, _plain(source)) for source in analysis.sources),
        (words.PROGRAM, _plain(" ".join(analysis.command))),
        (words.DEVICE, sentences.device(analysis)),
        (words.TORCH, _plain(analysis.torch)),
        (words.CHECKED, _plain(", ".join(analysis.checked))),
        *(
            (words.NOT_CHECKED, Text(f"{name}: {why.en}", f"{name}：{why.zh}"))
            for name, why in sentences.unchecked_by_reason(analysis)
        ),
        *((words.NOTE, note) for note in analysis.notes),
    ]
    rows = [row([both(name), both(_one_line(value))]) for name, value in facts if value.en]
    return (
        f'<section id="about"><h2>{both(words.RUN)}</h2><div class="scroll"><table class="rules facts"><tbody>'
        f"{''.join(rows)}</tbody></table></div></section>"
    )


def _plain(text: str) -> Text:
    return Text(text, text)


def _one_line(text: Text) -> Text:
    return Text(one_line(text.en), one_line(text.zh))

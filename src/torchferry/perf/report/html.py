"""An analysis as one self-contained page: verdict, findings, timeline, tables, memory. The script draws and sorts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from pathlib import PurePath
from typing import Any, NamedTuple

from torchferry import units
from torchferry.perf.compare.model import Comparison, OperatorPair
from torchferry.perf.model import Analysis, Diagnosis, Evidence, MemoryPoint, Part, Span, in_words
from torchferry.perf.report import sentences, words
from torchferry.perf.report.sentences import Report
from torchferry.perf.report.text import names, shapes
from torchferry.report.formats import Options
from torchferry.report.html import (
    SCRIPTED,
    badge,
    both,
    code,
    data_for_script,
    escaped,
    facts,
    pager,
    prose,
    quiet,
    row,
    section,
    table,
    whole_page,
)
from torchferry.report.safe import one_line
from torchferry.report.terminal import AND_MORE
from torchferry.text import Text
from torchferry.traces.columns import Interned

# The top of the page: the verdict, where the time goes, ranks and steps beside each other.

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
    head, *rest = sentences.verdict(shown)
    said = [*rest, *([sentences.ranks(analyses)] if len(analyses) > 1 else [])]
    about = [text for text in (sentences.steps(shown), sentences.device(shown)) if text and text.en]
    return (
        f'<div class="card {sentences.grade(shown).kind}">{both(head, "h2")}{"".join(both(text, "p") for text in said)}'
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
    return section(words.RANKS, table(heads, rows, "rules ranks"), "ranks")


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
    left = quiet(AND_MORE.format(count=more)) if more else ""
    axis = (
        f'<p class="quiet axis"><span>{steps[0].number}</span><span>{escaped(units.duration(longest))}</span>'
        f"<span>{steps[-1].number}</span></p>"
    )
    drawn = (
        f'<svg class="bar columns" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(words.STEPS.en)}">{columns}</svg>'
    )
    return section(words.STEPS, drawn + axis + left, "steps")


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
    return section(words.FINDINGS, nothing + cards, "findings")


def _card(number: int, diagnosis: Diagnosis, has_timeline: bool) -> str:
    grade = words.SEVERITY[diagnosis.severity]
    remedies = "".join(f"<li>{prose(remedy)}</li>" for remedy in diagnosis.remedies)
    gain = sentences.gain(diagnosis)
    saved = f'<p class="quiet">{both(words.GAIN)}: {prose(gain)}</p>' if gain else ""
    return (
        f'<article class="finding {grade.kind}" id="finding-{number}"><header><h3>{both(diagnosis.title)}</h3>{badge(grade)}'
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
    more = both(AND_MORE.format(count=len(rows) - _OPEN), "summary")
    return f"{shown}<details>{more}{table(heads, rows[_OPEN:], 'rules evidence')}</details>"


def _place(place: str) -> str:
    if not place:
        return ""
    return f'<code title="{escaped(one_line(place))}">{escaped(one_line(sentences.place(place)))}</code>'


def _cells(each: Evidence, has_timeline: bool) -> list[str]:
    name = one_line(in_words(each.what, "en"))
    what = both(each.what) if isinstance(each.what, Text) else code(name)
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


# Long tables: the rows as data that the script sorts, filters and divides into pages.

_WITHOUT_SCRIPT = 50  # rows
Cell = str | int | float | Text | None


class Column(NamedTuple):
    """kind: code, text, both (a Text), count, time (seconds), more (seconds, signed), share, ratio."""

    head: Text
    kind: str


def long_table(anchor: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], sorted_by: int) -> str:
    """The table; `sorted_by`: the column that the rows are in the order of, the greatest first."""
    head = "".join(
        f'<th scope="col" data-kind="{column.kind}"{" aria-sort=descending" if at == sorted_by else ""}>'
        f"{both(column.head)}</th>"
        for at, column in enumerate(columns)
    )
    first = [
        row([_static(column.kind, cell) for column, cell in zip(columns, cells, strict=True)])
        for cells in rows[:_WITHOUT_SCRIPT]
    ]
    data = [[_packed(cell) for cell in cells] for cells in rows]
    left = (
        f"<noscript>{quiet(words.SORTED_TABLE_LEFT.format(count=_WITHOUT_SCRIPT))}</noscript>"
        if len(rows) > _WITHOUT_SCRIPT
        else ""
    )
    return (
        f'<div class="long" id="{anchor}">{_tools(anchor, len(rows))}<div class="scroll"><table class="rules sorted"><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(first)}</tbody></table></div>{pager()}{left}"
        f"{data_for_script(data)}</div>"
    )


def _tools(anchor: str, count: int) -> str:
    shown = both(words.SHOWN.format(count=f"{count:,}"))
    return (
        f'<form class="filters" hidden><label class="hush" for="{anchor}-query">{both(words.SEARCH)}</label>'
        f'<input type="search" id="{anchor}-query" autocomplete="off" data-placeholder="{escaped(words.SEARCH.en)}|'
        f'{escaped(words.SEARCH.zh)}"><span class="quiet shown">{shown}</span></form>'
    )


def _packed(cell: Cell) -> Any:
    if isinstance(cell, Text):
        return [one_line(cell.en), one_line(cell.zh)]
    return one_line(cell) if isinstance(cell, str) else cell


def _static(kind: str, cell: Cell) -> str:
    """As the script writes it."""
    if isinstance(cell, Text):
        return both(cell)
    if cell is None or cell == "":
        return ""
    if isinstance(cell, str):
        return code(cell) if kind == "code" else escaped(one_line(cell))
    return escaped(_figure(kind, cell))


def _figure(kind: str, value: float) -> str:
    if kind == "time":
        return units.duration(value)
    if kind == "more":
        return units.signed_duration(value)
    if kind == "share":
        return units.percent(value)
    return f"{value:.2f}" if kind == "ratio" else f"{value:,g}"


def operators_section(analysis: Analysis) -> str:
    """Operators by name, shapes and types."""
    if not analysis.operators:
        return ""
    total = analysis.seconds or 1.0
    has_roofline = any(each.roofline is not None for each in analysis.operators)
    columns = [
        Column(words.OPERATOR, "code"), Column(words.SHAPES, "text"), Column(words.DTYPES, "text"),
        Column(words.PLACE, "code"), Column(words.CALLS, "count"), Column(words.HOST_TIME, "time"),
    ]  # fmt: skip
    columns += [] if analysis.is_host_only else [Column(words.DEVICE_TIME, "time")]
    columns += [Column(words.SHARE, "share"), *([Column(words.ROOFLINE, "share")] if has_roofline else [])]
    rows: list[list[Cell]] = [
        [
            each.operator, each.shapes, each.dtypes, sentences.place(each.place), each.calls, each.host_seconds,
            *([] if analysis.is_host_only else [each.device_seconds]), each.device_seconds / total,
            *([each.roofline] if has_roofline else []),
        ]
        for each in analysis.operators
    ]  # fmt: skip
    drawn = long_table("operator-table", columns, rows, 6 if analysis.is_host_only else 7)
    return section(words.OPERATORS, drawn, "operators")


def kernels_section(analysis: Analysis) -> str:
    """What the device did, by name."""
    if not analysis.kernels:
        return ""
    columns = [
        Column(words.KERNEL, "code"), Column(words.KIND, "both"), Column(words.LAUNCHED_BY, "code"),
        Column(words.CALLS, "count"), Column(words.TIME, "time"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [each.name, words.SPAN_KIND[each.kind], each.operator, each.calls, each.seconds]
        for each in analysis.kernels
    ]
    return section(words.KERNELS, long_table("kernel-table", columns, rows, 4), "kernels")


# The timeline: the bars as data, which the script draws.

_BUTTONS = (
    ("in", words.ZOOM_IN, "+"),
    ("out", words.ZOOM_OUT, "−"),
    ("earlier", words.EARLIER, "←"),
    ("later", words.LATER, "→"),
    ("step", words.WHOLE_STEP, ""),
    ("all", words.WHOLE, ""),
)


def timeline_section(analysis: Analysis) -> str:
    """The section; nothing if there was no trace."""
    if not analysis.timeline:
        return ""
    step = analysis.timeline_step
    help_text = words.TIMELINE_HELP_WHOLE if step is None else words.TIMELINE_HELP.format(step=step)
    left = analysis.timeline_left_out
    said = quiet(words.TIMELINE_LEFT_OUT.format(count=f"{left:,}")) if left else ""
    kinds = [kind for kind in words.SPAN_KIND if any(span.kind == kind for span in analysis.timeline)]
    legend = "".join(f'<li class="kind-{kind}">{both(words.SPAN_KIND[kind])}</li>' for kind in kinds)
    buttons = "".join(_button(action, name, sign) for action, name, sign in _BUTTONS)
    drawn = (
        f"{quiet(help_text)}{said}<noscript>{quiet(words.TIMELINE_NEEDS_SCRIPT)}</noscript>"
        f'<ul class="kinds">{legend}</ul><div class="drawing" hidden><p class="tools">{buttons}</p>'
        f'<div class="canvas"><canvas tabindex="0" role="img" aria-label="{escaped(words.TIMELINE.en)}" '
        f'aria-describedby="bar"></canvas></div><div class="hover" hidden></div>'
        f'<p id="bar" class="chosen" role="status"></p></div>'
        f"{data_for_script(_data(analysis), 'spans')}"
    )
    return section(words.TIMELINE, drawn, "timeline")


def _button(action: str, name: Text, sign: str) -> str:
    shown = (
        f'<span aria-hidden="true">{sign}</span><span class="hush">{both(name)}</span>'
        if sign
        else both(name)
    )
    return f'<button type="button" class="chip" data-view="{action}">{shown}</button>'


def _data(analysis: Analysis) -> dict[str, Any]:
    """Packed: texts are stored once and named by their position; times are microseconds."""
    texts, lanes, kinds = Interned(), Interned(), Interned()
    spans = [
        [
            lanes[one_line(span.lane)],
            texts[one_line(span.name)],
            round(span.start * 1e6, 3),
            round(span.seconds * 1e6, 3),
            kinds[span.kind],
            texts[one_line(span.detail)],
        ]
        for span in analysis.timeline
    ]
    return {
        "texts": list(texts),
        "lanes": list(lanes),
        "kinds": [[kind, *words.SPAN_KIND[kind]] for kind in kinds],
        "spans": spans,
        "step": _shown(analysis),
        "words": {"step": words.STEP, "steps": words.STEPS, "short": words.SHORT_ONES},
    }


def _shown(analysis: Analysis) -> list[float]:
    """The beginning and the end of what is shown at first."""
    for step in analysis.steps:
        if step.number == analysis.timeline_step:
            return [round(step.start * 1e6, 3), round((step.start + step.seconds) * 1e6, 3)]
    first = min(span.start for span in analysis.timeline)
    return [round(first * 1e6, 3), round(max(map(_end, analysis.timeline)) * 1e6, 3)]


def _end(span: Span) -> float:
    return span.start + span.seconds


# Curves of memory, one for each device.

_CURVE_WIDTH, _CURVE_HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 220, 76, 24, 10
_NEAR = 4  # the limit is drawn where the curve comes within this factor of it


def memory_section(analysis: Analysis) -> str:
    """The section; nothing if memory was not recorded."""
    drawn = "".join(
        _memory_figure(device, points, analysis.memory_limit if device != "cpu" else 0)
        for device, points in analysis.memory.items()
        if any(point.allocated for point in points)
    )
    return section(words.MEMORY, drawn, "memory") if drawn else ""


def _memory_figure(device: str, points: Sequence[MemoryPoint], limit: int) -> str:
    peak = max(point.allocated for point in points)
    reserved = max(point.reserved for point in points)
    keys = f'<span class="key allocated">{both(words.ALLOCATED)}: {escaped(units.size(peak))}</span>'
    if reserved:
        keys += f' <span class="key reserved">{both(words.RESERVED)}: {escaped(units.size(reserved))}</span>'
    if limit:
        keys += f' <span class="key limit">{both(words.LIMIT)}: {escaped(units.size(limit))}</span>'
    return f"<figure><figcaption><b>{escaped(one_line(device))}</b> {keys}</figcaption>{_drawn(device, points, limit)}</figure>"


def _drawn(device: str, points: Sequence[MemoryPoint], limit: int) -> str:
    high = max(max(point.allocated, point.reserved) for point in points) or 1
    shows_limit = bool(limit) and limit <= _NEAR * high
    high = max(high, limit) if shows_limit else high
    first, last = points[0].start, max(points[-1].start, points[0].start + 1e-9)
    base = _CURVE_HEIGHT - _BOTTOM

    def across(start: float) -> float:
        return _LEFT + (_CURVE_WIDTH - _LEFT - 8) * (start - first) / (last - first)

    def up(value: int) -> float:
        return _TOP + (base - _TOP) * (1 - value / high)

    def line(kind: str, values: Sequence[int]) -> str:
        """Steps: memory stays what it is until the next event."""
        path = f"M{_LEFT} {up(values[0]):.1f}"
        for point, value in zip(points[1:], values[1:], strict=True):
            path += f"H{across(point.start):.1f}V{up(value):.1f}"
        return f'<path class="{kind}" d="{path}"/>'

    curves = line("allocated", [point.allocated for point in points])
    if any(point.reserved for point in points):
        curves = line("reserved", [point.reserved for point in points]) + curves
    if shows_limit:
        curves += f'<path class="limit" d="M{_LEFT} {up(limit):.1f}H{_CURVE_WIDTH - 8}"/>'
    labels = (
        f'<text x="{_LEFT - 6}" y="{_TOP + 10}" class="end">{escaped(units.size(high))}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" class="end">0</text>'
        f'<text x="{_LEFT}" y="{_CURVE_HEIGHT - 6}">{escaped(units.duration(first))}</text>'
        f'<text x="{_CURVE_WIDTH - 8}" y="{_CURVE_HEIGHT - 6}" class="end">{escaped(units.duration(last))}</text>'
    )
    return (
        f'<svg class="curve" viewBox="0 0 {_CURVE_WIDTH} {_CURVE_HEIGHT}" role="img" aria-label="{escaped(one_line(device))}">'
        f'<path class="axis" d="M{_LEFT} {_TOP}V{base}H{_CURVE_WIDTH - 8}"/>{labels}{curves}</svg>'
    )


# The page.


def to_html(report: Report, options: Options) -> str:
    """The page; of several ranks it shows the slowest in full."""
    shown = report.analyses[sentences.slowest(report.analyses)]
    name = one_line(_name(shown))
    return whole_page(
        name,
        _sections(report, shown),
        language=options.language,
        heading=_heading(report, name),
        overview=overview(report.analyses, shown),
        package=str(__package__),
        styles=["analyze.css"],
        scripts=[SCRIPTED, "tables.js", "timeline.js", "jumps.js"],
    )


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
    rows = [
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
    return section(
        words.RUN, facts([both(name), both(_one_line(value))] for name, value in rows if value.en), "about"
    )


def _plain(text: str) -> Text:
    return Text(text, text)


def _one_line(text: Text) -> Text:
    return Text(one_line(text.en), one_line(text.zh))

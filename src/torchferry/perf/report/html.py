"""An analysis as one self-contained page: verdict, findings, timeline, tables, memory. The script draws and sorts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import PurePath
from typing import Any

from torchferry import units
from torchferry.perf.compare.model import RunComparison
from torchferry.perf.model import Analysis, Diagnosis, Evidence, MemoryPoint, in_words
from torchferry.perf.report import sentences, tables, words
from torchferry.perf.report.sentences import RunsReport
from torchferry.report.bodies import PageBody
from torchferry.report.formats import Options
from torchferry.report.html import (
    CONTROLS,
    ELEMENTS,
    TABLES,
    badge,
    both,
    data_for_script,
    escaped,
    facts,
    long_table,
    prose,
    quiet,
    row,
    section,
    table,
)
from torchferry.report.page import AND_MORE, Cell, Table, html_cell, html_table
from torchferry.report.provenance import without_folders
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.traces.columns import Interned

# The top of the page: the verdict, where the time goes, ranks and steps beside each other.

_MOST_STEPS = 200
_WIDTH, _HEIGHT = 1000, 120


def overview(analyses: Sequence[Analysis], shown: Analysis) -> str:
    """The verdict in large, and a bar of what the time goes to."""
    head, *rest = sentences.verdict(shown)
    said = [*rest, *([sentences.ranks(analyses)] if len(analyses) > 1 else [])]
    return (
        f'<div class="card {sentences.grade(shown).kind}">{both(head, "h2")}{"".join(both(text, "p") for text in said)}'
        f"{_shares(shown)}{''.join(quiet(text) for text in sentences.about(shown))}</div>"
    )


def _shares(analysis: Analysis) -> str:
    rows = sentences.parts(analysis)
    if not rows:
        return ""
    title = words.WHERE_TIME_GOES if analysis.steps else words.WHERE_ALL_TIME_GOES
    entries = "".join(
        f'<div class="entry {words.PART_TONES[part].kind}"><dt>{both(name)}</dt>'
        f"<dd>{units.percent(share)} <span class='quiet'>{escaped(units.duration(seconds))}</span></dd></div>"
        for part, name, seconds, share in rows
    )
    bar, at = "", 0.0
    for part, _, _, share in rows:
        bar += f'<rect class="{words.PART_TONES[part].kind}" x="{at:.2f}" width="{1000 * share:.2f}" height="10"/>'
        at += 1000 * share
    return (
        f'{both(title, "h3")}<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        f'{bar}</svg><dl class="legend">{entries}</dl>'
    )


def ranks_section(analyses: Sequence[Analysis]) -> str:
    """One row for each process, the slowest of them marked."""
    found = tables.ranks(analyses)
    slowest = sentences.slowest(analyses)
    rows = (
        row(map(html_cell, cells), kind="slowest" if at == slowest else "")
        for at, cells in enumerate(found.cells)
    )
    shown = table([column.head for column in found.columns], rows, "rules ranks")
    return section(found.title, shown, "ranks")


def steps_section(analysis: Analysis) -> str:
    """A column for each step, divided as its time is."""
    steps = analysis.steps[:_MOST_STEPS]
    if len(steps) < 2:
        return ""
    longest = max(step.seconds for step in steps) or 1.0
    wide = _WIDTH / len(steps)
    columns = ""
    for at, step in enumerate(steps):
        columns += f"<g><title>{escaped(f'{step.number}: {units.duration(step.seconds)}')}</title>"
        bottom = float(_HEIGHT)
        for part, seconds in step.parts.items():
            high = _HEIGHT * seconds / longest
            bottom -= high
            columns += (
                f'<rect class="{words.PART_TONES[part].kind}" x="{at * wide:.1f}" y="{bottom:.1f}" '
                f'width="{wide * 0.9:.1f}" height="{high:.1f}"/>'
            )
        columns += "</g>"
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


# The page's findings: a card for each bottleneck, with its proof, its remedy and what that saves.

_OPEN = 20  # rows of evidence that are seen at once


def findings_section(analysis: Analysis) -> str:
    """A card for each finding, the greatest first."""
    cards = ""
    for number, diagnosis in enumerate(analysis.diagnoses, 1):
        grade = words.SEVERITY[diagnosis.severity]
        remedies = "".join(f"<li>{prose(remedy)}</li>" for remedy in diagnosis.remedies)
        gain = sentences.gain(diagnosis)
        saved = f'<p class="quiet">{both(words.GAIN)}: {prose(gain)}</p>' if gain else ""
        cards += (
            f'<article class="finding {grade.kind}" id="finding-{number}"><header><h3>{both(diagnosis.title)}</h3>{badge(grade)}'
            f'<span class="rule">{escaped(diagnosis.id)}</span></header>{prose(diagnosis.summary, "p")}'
            f'<ul class="remedies">{remedies}</ul>{saved}{_evidence(diagnosis, bool(analysis.timeline))}</article>'
        )
    nothing = "" if cards else quiet(Text("No detector found anything.", "没有检测器发现问题。"))
    return section(Text("Findings", "发现"), nothing + cards, "findings")


def _evidence(diagnosis: Diagnosis, has_timeline: bool) -> str:
    if not diagnosis.evidence:
        return ""
    found = tables.evidence(diagnosis)
    heads = [column.head for column in found.columns]
    kept = [at not in (1, 2) or any(fields[at] for fields in found.rows) for at in range(len(heads))]
    rows = [
        row(compress(_with_places(each, cells, has_timeline), kept))
        for each, cells in zip(diagnosis.evidence, found.cells, strict=True)
    ]
    heads = list(compress(heads, kept))
    shown = table(heads, rows[:_OPEN], "rules evidence")
    if len(rows) <= _OPEN:
        return shown
    more = both(AND_MORE.format(count=len(rows) - _OPEN), "summary")
    return f"{shown}<details>{more}{table(heads, rows[_OPEN:], 'rules evidence')}</details>"


def _with_places(each: Evidence, cells: Sequence[Cell], has_timeline: bool) -> list[str]:
    """The row's cells, with a way to the timeline, and the whole path for those who point at its end."""
    shown = list(map(html_cell, cells))
    if has_timeline and each.example is not None:
        name = escaped(one_line(in_words(each.what, "en")))
        shown[0] += (
            f' <button type="button" class="plain jump" data-at="{each.example:.9f}" data-name="{name}" '
            f"hidden>{both(words.SHOW_IN_TIMELINE)}</button>"
        )
    if each.place:
        shown[2] = f'<span title="{escaped(one_line(each.place))}">{shown[2]}</span>'
    return shown


# The page's comparison with the baseline: the parts side by side, and operator by operator.


def comparison_section(comparison: RunComparison, number: int) -> str:
    """The comparison of one rank with the baseline."""
    said = "".join(both(text, "p") for text in sentences.comparison(comparison))
    notes = "".join(quiet(note) for note in comparison.notes)
    parts = tables.compared_parts(comparison)
    content = said + (html_table(parts, "rules sides") if parts.rows else "")
    for name, title, pairs in tables.pairs_of(comparison):
        detailed = tables.pairs_in_detail(title, pairs)
        content += f"<h3>{both(title)}</h3>{long_table(f'{name}-{number}', detailed, words.SEARCH, 8)}"
    return section(words.COMPARISON, content + notes, f"comparison-{number}", kind="comparison")


def long_section(name: str, found: Table, sorted_by: int) -> str:
    """A table that the script draws, searches and sorts; nothing if it is empty."""
    if not found.rows:
        return ""
    return section(found.title, long_table(f"{name}-table", found, words.SEARCH, sorted_by), f"{name}s")


_BUTTONS = (
    ("in", Text("Zoom in", "放大"), "+"),
    ("out", Text("Zoom out", "缩小"), "−"),
    ("earlier", Text("Earlier", "向前"), "←"),
    ("later", Text("Later", "向后"), "→"),
    ("step", Text("Whole step", "整步"), ""),
    ("all", Text("All", "全部"), ""),
)


def timeline_section(analysis: Analysis) -> str:
    """The timeline with its bars as data, which the script draws; nothing if there was no trace."""
    if not analysis.timeline:
        return ""
    step = analysis.timeline_step
    help_text = words.TIMELINE_HELP_WHOLE if step is None else words.TIMELINE_HELP.format(step=step)
    left = analysis.timeline_left_out
    said = quiet(words.TIMELINE_LEFT_OUT.format(count=f"{left:,}")) if left else ""
    kinds = [kind for kind in words.SPAN_KIND if any(span.kind == kind for span in analysis.timeline)]
    legend = "".join(f'<li class="kind-{kind}">{both(words.SPAN_KIND[kind])}</li>' for kind in kinds)
    buttons = ""
    for action, name, sign in _BUTTONS:
        shown = (
            f'<span aria-hidden="true">{sign}</span><span class="hush">{both(name)}</span>'
            if sign
            else both(name)
        )
        buttons += f'<button type="button" class="chip" data-view="{action}">{shown}</button>'
    drawn = (
        f"{quiet(help_text)}{said}<noscript>{quiet(words.TIMELINE_NEEDS_SCRIPT)}</noscript>"
        f'<ul class="kinds">{legend}</ul><div class="drawing" hidden><p class="tools">{buttons}</p>'
        f'<div class="canvas"><canvas tabindex="0" role="img" aria-label="{escaped(words.TIMELINE.en)}" '
        f'aria-describedby="bar"></canvas></div><div class="hover" hidden></div>'
        f'<p id="bar" class="chosen" role="status"></p></div>'
        f"{data_for_script(_data(analysis), 'spans')}"
    )
    return section(words.TIMELINE, drawn, "timeline")


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
        "words": {
            "step": words.STEP,
            "steps": words.STEPS,
            "short": Text("{count} short events", "{count} 个短事件"),
        },
    }


def _shown(analysis: Analysis) -> list[float]:
    """The beginning and the end of what is shown at first."""
    for step in analysis.steps:
        if step.number == analysis.timeline_step:
            return [round(step.start * 1e6, 3), round((step.start + step.seconds) * 1e6, 3)]
    first = min(span.start for span in analysis.timeline)
    last = max(span.start + span.seconds for span in analysis.timeline)
    return [round(first * 1e6, 3), round(last * 1e6, 3)]


_CURVE_WIDTH, _CURVE_HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 220, 76, 24, 10
_NEAR = 4  # the limit is drawn where the curve comes within this factor of it


def memory_section(analysis: Analysis) -> str:
    """Curves of memory, one for each device; nothing if memory was not recorded."""
    figures = ""
    for device, points in analysis.memory.items():
        if not any(point.allocated for point in points):
            continue
        peak = max(point.allocated for point in points)
        limit = analysis.memory_limit if device != "cpu" else 0
        reserved = max(point.reserved for point in points)
        keys = f'<span class="key allocated">{both(words.ALLOCATED)}: {escaped(units.size(peak))}</span>'
        if reserved:
            keys += (
                f' <span class="key reserved">{both(words.RESERVED)}: {escaped(units.size(reserved))}</span>'
            )
        if limit:
            keys += f' <span class="key limit">{both(words.LIMIT)}: {escaped(units.size(limit))}</span>'
        caption = f"<figcaption><b>{escaped(one_line(device))}</b> {keys}</figcaption>"
        figures += f"<figure>{caption}{_drawn(device, points, limit)}</figure>"
    return section(Text("Memory", "内存"), figures, "memory") if figures else ""


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


def to_body(report: RunsReport, options: Options) -> PageBody:
    """The page; of several ranks it shows the slowest in full."""
    shown = report.analyses[sentences.slowest(report.analyses)]
    file = PurePath(shown.sources[0]).name if shown.sources else "TorchFerry"
    name = one_line(" ".join(map(without_folders, shown.command)) or file)
    heading = escaped(name)
    if report.comparisons:
        baseline = report.comparisons[0].baseline.sources
        other = PurePath(baseline[0]).name if baseline else ""
        heading += f' <span class="arrow">↔</span> {escaped(one_line(other))}'
    return PageBody(
        "analyze",
        name,
        heading=heading,
        overview=overview(report.analyses, shown),
        sections=tuple(_sections(report, shown)),
        package=str(__package__),
        styles=("analyze.css",),
        scripts=(ELEMENTS, CONTROLS, TABLES, "timeline.js", "jumps.js"),
    )


def _sections(report: RunsReport, shown: Analysis) -> Iterator[str]:
    if len(report.analyses) > 1:
        yield ranks_section(report.analyses)
    yield findings_section(shown)
    for number, comparison in enumerate(report.comparisons):
        yield comparison_section(comparison, number)
    yield timeline_section(shown)
    yield steps_section(shown)
    yield long_section("operator", tables.operators(shown, rooflines=True), 6 if shown.is_host_only else 7)
    yield long_section("kernel", tables.kernels(shown), 4)
    yield memory_section(shown)
    yield _about(shown)


def _about(analysis: Analysis) -> str:
    """Where the figures come from, what was looked for and what could not be."""
    rows = [
        *((Text("File", "文件"), _plain(source)) for source in analysis.sources),
        (Text("Program", "程序"), _plain(" ".join(analysis.command))),
        (Text("Device", "设备"), sentences.device(analysis)),
        (Text("PyTorch", "PyTorch"), _plain(analysis.torch)),
        (Text("Checked", "已检查"), _plain(", ".join(analysis.checked))),
        *(
            (words.NOT_CHECKED, Text(f"{name}: {why.en}", f"{name}：{why.zh}"))
            for name, why in sentences.unchecked_by_reason(analysis)
        ),
        *((words.NOTE, note) for note in analysis.notes),
    ]
    return section(
        Text("Run", "本次运行"),
        facts(
            [both(name), both(Text(one_line(value.en), one_line(value.zh)))]
            for name, value in rows
            if value.en
        ),
        "about",
    )


def _plain(text: str) -> Text:
    return Text(text, text)

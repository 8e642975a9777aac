"""An analysis as one self-contained page: verdict, findings, timeline, tables, memory. The script draws and sorts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import PurePath
from typing import Any

from torchferry import units
from torchferry.perf.compare.model import RunComparison
from torchferry.perf.model import Analysis, Diagnosis, Evidence, MemoryPoint, StepTime, in_words
from torchferry.perf.report import sentences, tables, words
from torchferry.perf.report.sentences import RunsReport
from torchferry.report.bodies import PageBody
from torchferry.report.formats import Options
from torchferry.report.html import (
    CHARTS,
    CHARTS_STYLE,
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
from torchferry.report.svg import Chart, figures, round_up
from torchferry.text import Text
from torchferry.traces.columns import Interned

# The top of the page: the verdict, where the time goes, ranks and steps beside each other.

_MOST_STEPS = 200
_WIDTH, _HEIGHT = 1000, 120
_TICKS = 4
_MOST_NUMBERS = 20  # of steps below their columns


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
    top = round_up(max(step.seconds for step in steps) or 1.0)
    wide = _WIDTH / len(steps)
    columns = "".join(_column(step, at * wide, wide, top) for at, step in enumerate(steps))
    lines = "".join(
        f'<line class="grid" x1="0" x2="{_WIDTH}" y1="{_HEIGHT * at / _TICKS:.1f}" y2="{_HEIGHT * at / _TICKS:.1f}"/>'
        for at in range(_TICKS)
    )
    heights = "".join(
        f"<span>{escaped(units.duration(top * at / _TICKS))}</span>" for at in range(_TICKS, -1, -1)
    )
    every = -(-len(steps) // _MOST_NUMBERS)
    numbers = "".join(f"<span>{step.number}</span>" for step in steps[::every])
    more = len(analysis.steps) - len(steps)
    left = quiet(AND_MORE.format(count=more)) if more else ""
    parts = [part for part in words.PART_TONES if any(step.parts.get(part) for step in steps)]
    legend = "".join(
        f'<div class="entry {words.PART_TONES[part].kind}"><dt>{both(words.PART[part])}</dt></div>'
        for part in parts
    )
    drawn = (
        f'<dl class="legend">{legend}</dl><div class="steps-drawn"><div class="heights">{heights}</div>'
        f'<svg class="bar columns" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(words.STEPS.en)}">{lines}{columns}</svg>'
        f'<span>{both(words.STEP)}</span><div class="numbers">{numbers}</div></div>'
    )
    return section(words.STEPS, drawn + left, "steps")


def _column(step: StepTime, left: float, wide: float, top: float) -> str:
    parts = [(part, seconds) for part, seconds in step.parts.items() if seconds]
    said = ", ".join(f"{words.PART[part].en} {units.duration(seconds)}" for part, seconds in parts)
    drawn = f"<g><title>{escaped(f'{step.number}: {units.duration(step.seconds)} ({said})')}</title>"
    bottom = float(_HEIGHT)
    for part, seconds in parts:
        high = _HEIGHT * seconds / top
        bottom -= high
        drawn += (
            f'<rect class="{words.PART_TONES[part].kind}" x="{left:.1f}" y="{bottom:.1f}" '
            f'width="{wide * 0.85:.1f}" height="{high:.1f}"/>'
        )
    return drawn + "</g>"


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
    more = both(AND_MORE.format(count=len(rows) - _OPEN))
    return (
        f"{shown}<details><summary>{more}</summary>{table(heads, rows[_OPEN:], 'rules evidence')}</details>"
    )


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


_SEARCH_BARS = Text("Find a bar, Enter for the next", "查找条块，按 Enter 到下一个")
_PERFETTO = Text(
    "To see every event, open {file} in Perfetto (PERFETTO) or chrome://tracing; the file stays in your browser.",
    "要查看全部事件，请用 Perfetto（PERFETTO）或 chrome://tracing 打开 {file}；文件只在浏览器中处理。",
)
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
    search = (
        f'<label class="hush" for="bars">{both(_SEARCH_BARS)}</label><input type="search" id="bars" '
        f'autocomplete="off" data-placeholder="{escaped("|".join(_SEARCH_BARS))}"><span class="quiet" id="found" role="status"></span>'
    )
    drawn = (
        f"{quiet(help_text)}{_perfetto(analysis)}{said}<noscript>{quiet(words.TIMELINE_NEEDS_SCRIPT)}</noscript>"
        f'<ul class="kinds">{legend}</ul><div class="timeline-drawn" hidden><p class="tools">{buttons}</p><p class="search-bars">{search}</p>'
        f'<div class="canvas"><canvas tabindex="0" role="img" aria-label="{escaped(words.TIMELINE.en)}" '
        f'aria-describedby="bar"></canvas></div><div class="hover" hidden></div>'
        f'<p id="bar" class="chosen" role="status"></p></div>'
        f"{data_for_script(_data(analysis), 'spans')}"
    )
    return section(words.TIMELINE, drawn, "timeline")


def _perfetto(analysis: Analysis) -> str:
    """Where the whole trace can be seen: not every event is in this page."""
    names = [PurePath(source).name for source in analysis.sources]
    trace = next((name for name in names if ".json" in name), "")
    if not trace:
        return ""
    link = '<a href="https://ui.perfetto.dev" rel="noreferrer">ui.perfetto.dev</a>'
    said = "".join(
        f'<span lang="{language}">{escaped(text).replace("PERFETTO", link)}</span>'
        for language, text in zip(("en", "zh-CN"), _PERFETTO.format(file=one_line(trace)), strict=True)
    )
    return f'<p class="quiet">{said}</p>'


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


_NEAR = 4  # the limit is drawn where the curve comes within this factor of it
_TIME = Text("time", "时间")
_ALLOCATED_STYLE, _RESERVED_STYLE, _LIMIT_STYLE = 2, 5, 1


def memory_section(analysis: Analysis) -> str:
    """Curves of memory, one for each device; nothing if memory was not recorded."""
    drawn = figures(
        _memory_chart(device, points, analysis.memory_limit if device != "cpu" else 0)
        for device, points in analysis.memory.items()
        if any(point.allocated for point in points)
    )
    return section(Text("Memory", "内存"), drawn, "memory") if drawn else ""


def _memory_chart(device: str, points: Sequence[MemoryPoint], limit: int) -> Chart:
    """Steps: memory stays what it is until the next event."""
    curves = [(words.ALLOCATED, [point.allocated for point in points], _ALLOCATED_STYLE)]
    if any(point.reserved for point in points):
        curves.append((words.RESERVED, [point.reserved for point in points], _RESERVED_STYLE))
    highest = max(max(values) for _, values, _ in curves)
    peaks = [_with_size(name, max(values)) for name, values, _ in curves]
    if limit and limit <= _NEAR * highest:
        curves.append((words.LIMIT, [limit] * len(points), _LIMIT_STYLE))
        peaks.append(_with_size(words.LIMIT, limit))
    notes = (_with_size(words.LIMIT, limit),) if limit and len(peaks) < 3 and limit > _NEAR * highest else ()
    return Chart(
        title=_plain(one_line(device)),
        names=tuple(peaks),
        steps=tuple(point.start for point in points for _ in range(2))[1:],
        values=tuple(tuple(value for value in values for _ in range(2))[:-1] for _, values, _ in curves),
        total=len(points),
        group=1,
        across=_TIME,
        kinds=("time", "size"),
        styles=tuple(style for _, _, style in curves),
        notes=notes,
    )


def _with_size(name: Text, count: int) -> Text:
    size = units.size(count)
    return Text(f"{name.en}: {size}", f"{name.zh}：{size}")


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
        styles=(CHARTS_STYLE, "analyze.css"),
        scripts=(ELEMENTS, CONTROLS, TABLES, CHARTS, "timeline.js", "jumps.js"),
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

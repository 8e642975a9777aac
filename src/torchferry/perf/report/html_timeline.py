"""The page's timeline: the bars as data, which the script draws."""

from __future__ import annotations

from typing import Any

from torchferry.perf.model import Analysis, Span
from torchferry.perf.report import words
from torchferry.perf.report.html_parts import quiet
from torchferry.report.html import embed
from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.traces.columns import Interned

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
    return (
        f'<section id="timeline"><h2>{both(words.TIMELINE)}</h2>{quiet(help_text)}{said}'
        f"<noscript>{quiet(words.TIMELINE_NEEDS_SCRIPT)}</noscript>"
        f'<ul class="kinds">{legend}</ul><div class="drawing" hidden><p class="tools">{buttons}</p>'
        f'<div class="canvas"><canvas tabindex="0" role="img" aria-label="{escaped(words.TIMELINE.en)}" '
        f'aria-describedby="bar"></canvas></div><div class="hover" hidden></div>'
        f'<p id="bar" class="chosen" role="status"></p></div>'
        f'<script type="application/json" id="spans">{embed(_data(analysis))}</script></section>'
    )


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

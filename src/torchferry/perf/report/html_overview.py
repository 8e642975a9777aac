"""The top of the page: the verdict, where the time goes, ranks and steps beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchferry.perf.model import Analysis, Part, Severity
from torchferry.perf.report import sentences, words
from torchferry.perf.report.html_parts import quiet
from torchferry.report.markup import both, escaped, row, table
from torchferry.text import Text

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
        f"<dd>{sentences.share(share)} <span class='quiet'>{escaped(sentences.duration(seconds))}</span></dd></div>"
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
                escaped(sentences.duration(sentences.step_seconds(each))),
                escaped(sentences.duration(sentences.own_seconds(each))),
                *(sentences.share(each.share(part)) for part in present),
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
        f"<g><title>{escaped(f'{step.number}: {sentences.duration(step.seconds)}')}</title>"
        f"{_column(step.parts, number * wide, wide * 0.9, longest)}</g>"
        for number, step in enumerate(steps)
    )
    more = len(analysis.steps) - len(steps)
    left = quiet(words.AND_MORE.format(count=more)) if more else ""
    axis = (
        f'<p class="quiet axis"><span>{steps[0].number}</span><span>{escaped(sentences.duration(longest))}</span>'
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

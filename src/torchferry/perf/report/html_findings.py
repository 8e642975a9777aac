"""The page's findings: a card for each bottleneck, with its proof, its remedy and what that saves."""

from __future__ import annotations

from itertools import compress

from torchferry.perf.model import Analysis, Diagnosis, Evidence, in_words
from torchferry.perf.report import sentences, words
from torchferry.perf.report.html_overview import TONES
from torchferry.perf.report.html_parts import prose, quiet
from torchferry.report.markup import both, escaped, row, table
from torchferry.report.safe import one_line
from torchferry.text import Text

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
        escaped(sentences.duration(each.seconds)) if each.seconds else "",
        sentences.share(each.share) if each.share else "",
    ]

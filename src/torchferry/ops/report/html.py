"""Readiness as one self-contained page: made here, whole; the script adds sorting, filters and the choice of language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchferry.ops.readiness import Readiness, Support
from torchferry.ops.report import sentences, words
from torchferry.ops.report.html_modules import modules_section
from torchferry.ops.report.html_operators import operators_section
from torchferry.ops.report.html_parts import SIGNS, TONES, Anchors, badge, quiet
from torchferry.ops.report.sources import SourceFile, SourceLine, source_files
from torchferry.ops.report.tables import Overview, label, worst
from torchferry.report.frame import Page, framed
from torchferry.report.html import asset
from torchferry.report.markup import both, escaped, row
from torchferry.report.safe import one_line
from torchferry.text import Language


def to_html(readinesses: Sequence[Readiness], language: Language = "en", folder: Path | None = None) -> str:
    """The page; it holds both languages and opens in the one asked for. `folder`: where the program ran."""
    overview = Overview(readinesses)
    operators = {each.operator: f"operator-{at}" for at, each in enumerate(overview.operators)}
    files = source_files(overview, folder)
    lines = _line_anchors(files)
    program = one_line(overview.capture.program)
    devices = ", ".join(one_line(each.vendor) for each in overview.readinesses)
    page = Page(
        f"{program} → {devices}",
        f'{escaped(program)} <span class="arrow">→</span> {escaped(devices)}',
        "".join(map(_card, overview.readinesses)),
        [
            modules_section(overview, operators) if overview.uses else "",
            operators_section(overview, operators, lines) if overview.uses else "",
            _sources(files, lines) if files else "",
            _run(overview),
        ],
        asset("ops.css", "torchferry.ops.report"),
        asset("ops.js", "torchferry.ops.report"),
    )
    return framed(page, language)


def _card(readiness: Readiness) -> str:
    """One device: the share in large, and the verdict."""
    support = worst(judgement.support for judgement in readiness.judgements)
    is_known = any(judgement.support is not Support.UNKNOWN for judgement in readiness.judgements)
    share = sentences.ready_percent(readiness) if is_known else "?" if readiness.judgements else "–"
    tone = TONES[support] if support else "info"
    return (
        f'<div class="device {tone}"><h2>{escaped(one_line(label(readiness)))}</h2><div class="big">{escaped(share)}</div>'
        f"{both(sentences.said(readiness), 'p')}</div>"
    )


def _line_anchors(files: Sequence[SourceFile]) -> Anchors:
    return {
        f"{file.name}:{line.number}": f"line-{at}-{line.number}"
        for at, file in enumerate(files)
        for line in file.lines
        if line.operators
    }


def _sources(files: Sequence[SourceFile], anchors: Anchors) -> str:
    shown = "".join(_file(file, anchors) for file in files)
    return f'<section id="sources"><h2>{both(words.SOURCE)}</h2>{quiet(words.LINES_HELP)}{shown}</section>'


def _file(file: SourceFile, anchors: Anchors) -> str:
    rows = []
    last = file.lines[0].number - 1
    for line in file.lines:
        if line.number > last + 1:
            rows.append('<tr class="gap"><td colspan="4">⋯</td></tr>')
        rows.append(_line(line, anchors.get(f"{file.name}:{line.number}", "")))
        last = line.number
    note = "" if file.is_readable else quiet(words.UNREADABLE)
    return (
        f'<details class="group file" open><summary><h3><code>{escaped(one_line(file.name))}</code></h3>'
        f'<span class="quiet">{sentences.part(file.share)}</span></summary>{note}'
        f'<div class="scroll"><table class="code"><tbody>{"".join(rows)}</tbody></table></div></details>'
    )


def _line(line: SourceLine, anchor: str) -> str:
    if not anchor:
        return f"<tr><td>{line.number}</td><td></td><td></td><td><code>{escaped(line.text)}</code></td></tr>"
    support = worst(filter(None, line.supports))
    signs = "".join(
        f'<i class="{TONES[each]}">{SIGNS.get(each, "✓")}</i>' if each else "<i> </i>"
        for each in line.supports
    )
    operators = ", ".join(map(one_line, line.operators[: sentences.MAX_ITEMS]))
    tone = TONES[support] if support else ""
    return (
        f'<tr class="calls {tone}" id="{anchor}" title="{escaped(operators)}"><td>{line.number}</td>'
        f'<td class="number">{sentences.part(line.share)}</td><td class="signs">{signs}'
        f'<span class="hush">{badge(support)}</span></td><td><code>{escaped(line.text)}</code></td></tr>'
    )


def _run(overview: Overview) -> str:
    capture = overview.capture
    rows = [
        row([both(name), escaped(str(value))]) for name, value in sentences.facts(capture, len(overview.uses))
    ]
    rows += [row([both(words.NOTE), both(sentences.note(key))]) for key in capture.notes]
    return (
        f'<section id="run"><h2>{both(words.SUMMARY)}</h2>'
        f'<div class="scroll"><table class="rules facts"><tbody>{"".join(rows)}</tbody></table></div></section>'
    )

"""An analysis as one self-contained page: verdict, findings, timeline, tables, memory. The script draws and sorts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from torchferry.perf.model import Analysis
from torchferry.perf.report import sentences, words
from torchferry.perf.report.content import Report
from torchferry.perf.report.html_comparison import comparison_section
from torchferry.perf.report.html_findings import findings_section
from torchferry.perf.report.html_memory import memory_section
from torchferry.perf.report.html_overview import overview, ranks_section, steps_section
from torchferry.perf.report.html_tables import kernels_section, operators_section
from torchferry.perf.report.html_timeline import timeline_section
from torchferry.report.frame import Page, framed
from torchferry.report.html import asset
from torchferry.report.markup import both, escaped, row
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

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

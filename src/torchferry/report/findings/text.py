"""The terminal report: a summary, the rules, and what needs attention, by file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from torchferry.finding import Finding, Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import (
    ATTENTION,
    WORST_FIRST,
    FindingsSummary,
    in_order,
    summarize,
)
from torchferry.report.formats import Options
from torchferry.report.safe import one_line, shortened
from torchferry.report.terminal import Screen, plain

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.panel import Panel
    from rich.table import Table

MAX_ITEMS = 40
MAX_CODE = 200
MAX_REPEATED = 60  # characters of a message that is told again; a longer one is told once, then referred to
MAX_RULE = 16
BAR_WIDTH = 24


def render(report: Report, options: Options) -> str:
    """For a terminal; elsewhere without colours."""
    screen = Screen(options)
    screen.part(build(report, options))
    return screen.text()


def build(report: Report, options: Options) -> Group:
    """What to print on a rich console."""
    from rich.console import Group
    from rich.text import Text

    summary = summarize(report)
    parts: list[RenderableType] = [_panel(report, summary, options)]
    if summary.findings:
        parts += ["", _rules(summary, options)]
    else:
        parts += ["", Text(options.say(words.NOTHING_FOUND), "green")]
    failed = [record for record in report.files if record.status is FileStatus.FAILED]
    if failed:
        parts += ["", Text(options.say(words.FILES_FAILED), "bold")]
    for record in failed:
        parts.append(Text.assemble("  ", (one_line(record.path), "bold"), ": ", one_line(record.reason)))
    parts += _attention(report, options)
    return Group(*parts)


def _panel(report: Report, summary: FindingsSummary, options: Options) -> Panel:
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    say = options.say
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column()
    grid.add_row(say(words.SITES), Text(str(summary.sites), "bold"), "")
    grid.add_row(
        say(words.AUTOMATIC), Text(str(summary.automatic), words.KIND[Kind.CHANGE].style), _bar(summary)
    )
    for label, kind in (
        (words.TO_DECIDE, Kind.TODO),
        (words.UNSUPPORTED, Kind.UNSUPPORTED),
        (words.UNKNOWN, Kind.UNKNOWN),
        (words.RISKS, Kind.RISK),
        (words.LEFT, Kind.INFO),
    ):
        count = summary.by_kind[kind]
        grid.add_row(say(label), Text(str(count), words.KIND[kind].style if count else "dim"), "")
    grid.add_row(say(words.FILES_SEEN), str(summary.files_seen), "")
    changed = words.FILES_CHANGED if report.command == "convert" else words.FILES_TO_CHANGE
    grid.add_row(say(changed), str(summary.files_changed), "")
    added = [record.path for record in report.files if record.status is FileStatus.ADDED]
    if added:
        grid.add_row(say(words.FILES_ADDED), str(len(added)), Text(shortened(", ".join(added), 40)))
    if summary.files_failed:
        grid.add_row(say(words.FILES_FAILED), Text(str(summary.files_failed), "red"), "")
    title = Text(f"TorchFerry {report.command}: {shortened(report.project, 40)} → {one_line(report.vendor)}")
    return Panel(grid, title=title, title_align="left", expand=True)


def _bar(summary: FindingsSummary) -> RenderableType:
    from rich.text import Text

    if not summary.sites:
        return Text(summary.percent, "dim")
    done = summary.automatic * BAR_WIDTH // summary.sites
    return Text.assemble(
        ("█" * done, words.KIND[Kind.CHANGE].style),
        ("░" * (BAR_WIDTH - done), "dim"),
        f"  {summary.percent}",
    )


def _rules(summary: FindingsSummary, options: Options) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column(options.say(words.RULE), no_wrap=True)
    table.add_column(options.say(words.ABOUT), ratio=1, overflow="fold")
    kinds = [kind for kind in WORST_FIRST if summary.by_kind[kind]]
    for kind in kinds:
        table.add_column(
            options.say(words.KIND_SHORT[kind]), justify="right", no_wrap=True, style=words.KIND[kind].style
        )
    for rule in summary.by_rule:
        code = [shortened(text, 60) for text in (rule.example.before, rule.example.after) if text]
        example = " → ".join(code) or shortened(options.say(rule.example.message), 60)
        about = one_line(options.about_rule(rule.rule)) or example
        counts = (str(rule.counts.get(kind, 0) or "") for kind in kinds)
        table.add_row(*map(plain, (shortened(rule.rule, MAX_RULE), about, *counts)))
    return table


def _attention(report: Report, options: Options) -> list[RenderableType]:
    from rich.text import Text

    findings = in_order(finding for finding in report.findings if finding.kind in ATTENTION)
    if not findings:
        return ["", Text(options.say(words.NOTHING_TO_DO), "green")] if report.findings else []
    shown = findings if options.everything else findings[:MAX_ITEMS]
    parts: list[RenderableType] = [
        "",
        Text(f"{options.say(words.NEEDS_ATTENTION)} ({len(findings)})", "bold"),
    ]
    told: dict[tuple[str, str], str] = {}
    for path, group in groupby(shown, key=lambda finding: finding.path):
        parts += ["", Text(one_line(path), "bold underline"), _items(group, options, told)]
    if len(findings) > len(shown):
        more = words.AND_MORE.format(count=len(findings) - len(shown))
        parts += ["", Text(f"… {options.say(more)}", "dim")]
    return parts


def _items(findings: Iterator[Finding], options: Options, told: dict[tuple[str, str], str]) -> Table:
    """The findings of one file; `told` are the messages so far, each with its first place."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(justify="right", no_wrap=True, min_width=7)
    table.add_column(
        no_wrap=True, min_width=max(cell_len(options.say(words.KIND[kind].name)) for kind in ATTENTION)
    )
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for finding in findings:
        message = one_line(options.say(finding.message))
        first = told.setdefault((finding.rule, message), f"{finding.path}:{finding.line}")
        if first != f"{finding.path}:{finding.line}" and len(message) > MAX_REPEATED:
            message = options.say(words.AS_AT.format(place=one_line(first)))
        detail = plain(message)
        if finding.before:
            detail = Text.assemble(detail, "\n", (shortened(finding.before, MAX_CODE), "dim"))
        table.add_row(
            f"{finding.line}:{finding.col}",
            Text(options.say(words.KIND[finding.kind].name), words.KIND[finding.kind].style),
            plain(shortened(finding.rule, MAX_RULE)),
            detail,
        )
    return table

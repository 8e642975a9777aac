"""Markdown: the whole report as a document to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from torchferry.finding import Finding, Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import WORST_FIRST, FindingsSummary, in_order, summarize
from torchferry.report.formats import Options
from torchferry.report.markdown import code, escape, row
from torchferry.report.safe import web_address
from torchferry.text import Text


def render(report: Report, options: Options) -> bytes:
    """The report as Markdown."""
    return ("\n".join(_lines(report, options)) + "\n").encode("utf-8")


def _lines(report: Report, options: Options) -> Iterator[str]:
    say = options.say
    summary = summarize(report)
    yield f"# {say(words.TITLE)}: {escape(report.project)} → {escape(report.vendor)}"
    yield from _overview(report, summary, options)
    if not summary.findings:
        yield from ("", say(words.NOTHING_FOUND))
    else:
        yield from _rules(summary, options)
    yield from _failed(report, options)
    findings = in_order(report.findings)
    for kind in WORST_FIRST:
        chosen = [finding for finding in findings if finding.kind is kind]
        if chosen:
            yield from (
                "",
                f"## {_title(say(words.KIND[kind].name))} ({len(chosen)})",
                "",
                say(words.KIND[kind].meaning),
            )
            yield from _by_file(chosen, options)


def _overview(report: Report, summary: FindingsSummary, options: Options) -> Iterator[str]:
    changed = words.FILES_CHANGED if report.command == "convert" else words.FILES_TO_CHANGE
    facts: list[tuple[Text, str]] = [
        (words.SITES, str(summary.sites)),
        (words.AUTOMATIC, f"{summary.automatic} ({summary.percent()})"),
        (words.TO_DECIDE, str(summary.todo)),
        (words.UNSUPPORTED, str(summary.unsupported)),
        (words.UNKNOWN, str(summary.unknown)),
        (words.RISKS, str(summary.by_kind[Kind.RISK])),
        (words.LEFT, str(summary.by_kind[Kind.INFO])),
        (words.FILES_SEEN, str(summary.files_seen)),
        (changed, str(summary.files_changed)),
        (words.FILES_FAILED, str(summary.files_failed)),
    ]
    yield from ("", f"| {options.say(words.SUMMARY)} | |", "|---|---:|")
    yield from (row([options.say(name), value]) for name, value in facts)


def _rules(summary: FindingsSummary, options: Options) -> Iterator[str]:
    names = [options.say(words.KIND[kind].name) for kind in WORST_FIRST]
    yield from ("", f"## {options.say(words.RULES)}", "")
    yield row([options.say(words.RULE), options.say(words.ABOUT), *names])
    yield "|---|---|" + "---:|" * len(names)
    for rule in summary.by_rule:
        about = escape(options.about_rule(rule.rule)) or _rewrite(rule.example)
        yield row([escape(rule.rule), about, *(str(rule.counts.get(kind, 0) or "") for kind in WORST_FIRST)])


def _failed(report: Report, options: Options) -> Iterator[str]:
    failed = [record for record in report.files if record.status is FileStatus.FAILED]
    if failed:
        yield from ("", f"## {options.say(words.FILES_FAILED)} ({len(failed)})", "")
        yield from (f"- {code(record.path)}: {escape(record.reason)}" for record in failed)


def _by_file(findings: Iterable[Finding], options: Options) -> Iterator[str]:
    headings = [
        options.say(heading) for heading in (words.LINE, words.RULE, words.BEFORE, words.AFTER, words.MESSAGE)
    ]
    for path, group in groupby(findings, key=lambda finding: finding.path):
        yield from ("", f"### {code(path)}", "", row(headings), "|---:|---|---|---|---|")
        for finding in group:
            message = escape(options.say(finding.message))
            link = web_address(finding.url)
            if link:
                message += f" [{options.say(words.LINK)}](<{link.replace('>', '%3E').replace('|', '%7C')}>)"
            place = f"{finding.line}:{finding.col}"
            yield row([place, escape(finding.rule), code(finding.before), code(finding.after), message])


def _rewrite(finding: Finding) -> str:
    parts = [code(text) for text in (finding.before, finding.after) if text]
    return " → ".join(parts)


def _title(text: str) -> str:
    return text[:1].upper() + text[1:]

"""Markdown: the work list as a document to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.finding import Finding, Severity
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import FindingsSummary, overview, summarize
from torchferry.report.findings.work_list import WorkItem, headline, work_list
from torchferry.report.formats import Options
from torchferry.report.markdown import code, escape, row
from torchferry.report.safe import web_address, with_code
from torchferry.text import Text


def render(report: Report, options: Options) -> bytes:
    """The report as Markdown."""
    return ("\n".join(_lines(report, options)) + "\n").encode("utf-8")


def _lines(report: Report, options: Options) -> Iterator[str]:
    say = options.say
    work = work_list(report)
    yield f"# {say(words.TITLE)}: {escape(report.project)} → {escape(report.vendor)}"
    if not report.findings:
        yield from ("", say(words.NOTHING_FOUND))
    else:
        yield from ("", f"**{escape(say(headline(work, report.command)))}**")
    failed = [record for record in report.files if record.status is FileStatus.FAILED]
    if failed:
        yield from ("", f"## {say(words.FILES_FAILED)} ({len(failed)})", "")
        yield from (f"- {code(record.path)}: {escape(record.reason)}" for record in failed)
    for severity in Severity:
        items = work.of(severity)
        if items:
            title = f"## {say(words.SEVERITY_HEADING[severity])} ({work.places[severity]})"
            yield from ("", title, "", say(words.SEVERITY[severity].meaning))
        for item in items:
            yield from _item(item, options)
    yield from _summary(report, options)


def _item(item: WorkItem, options: Options) -> Iterator[str]:
    """One cause: why, what to do, its places."""
    say = options.say
    effort = f", {say(words.about_time(item.minutes))}" if item.minutes else ""
    yield from ("", f"### {_prose(options, item.title)} ({escape(item.rule)} × {len(item.findings)}{effort})")
    for label, text in ((words.WHY, item.first.why), (words.DO, item.first.do)):
        if text.en:
            yield from ("", f"**{say(label)}**: {_prose(options, text)}")
    link = web_address(item.first.url)
    if link:
        yield from ("", f"[{say(words.LINK)}](<{link.replace('>', '%3E').replace('|', '%7C')}>)")
    yield ""
    if item.severity is Severity.DONE:
        yield row([say(words.PLACES), say(words.BEFORE), say(words.AFTER)])
        yield "|---|---|---|"
        yield from (
            row([_place(finding), code(finding.before), code(finding.after)]) for finding in item.findings
        )
    else:
        yield row([say(words.PLACES), say(words.SOURCE_LINE)])
        yield "|---|---|"
        yield from (
            row([_place(finding), code(finding.source or finding.before)]) for finding in item.findings
        )


def _place(finding: Finding) -> str:
    return code(f"{finding.path}:{finding.line}:{finding.col}")


def _prose(options: Options, text: Text) -> str:
    """A sentence in which backticks stay code."""
    return with_code(options.say(text), escape, code)


def _summary(report: Report, options: Options) -> Iterator[str]:
    say = options.say
    summary = summarize(report)
    yield from ("", f"## {say(words.SUMMARY)}", "", f"| {say(words.SUMMARY)} | |", "|---|---:|")
    yield row([say(words.SITES), str(summary.sites)])
    yield row([say(words.AUTOMATIC), f"{summary.automatic} ({summary.percent})"])
    yield from (row([say(name), str(value)]) for name, value in overview(report, summary))
    if summary.findings:
        yield from _rules(summary, options)


def _rules(summary: FindingsSummary, options: Options) -> Iterator[str]:
    names = [options.say(words.SEVERITY[severity].name) for severity in Severity]
    yield from ("", f"## {options.say(words.RULES)}", "")
    yield row([options.say(words.RULE), options.say(words.ABOUT), *names])
    yield "|---|---|" + "---:|" * len(names)
    for rule in summary.by_rule:
        example = " → ".join(code(text) for text in (rule.example.before, rule.example.after) if text)
        about = escape(options.about_rule(rule.rule)) or example
        counts = (str(rule.severities.get(severity, 0) or "") for severity in Severity)
        yield row([escape(rule.rule), about, *counts])

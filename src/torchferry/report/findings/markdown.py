"""Markdown: the whole report as a document to read or to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from torchferry.finding import Finding
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import WORST_FIRST, FindingsSummary, in_order, overview, summarize
from torchferry.report.formats import Options
from torchferry.report.markdown import code, escape, row
from torchferry.report.safe import web_address


def render(report: Report, options: Options) -> bytes:
    """The report as Markdown."""
    return ("\n".join(_lines(report, options)) + "\n").encode("utf-8")


def _lines(report: Report, options: Options) -> Iterator[str]:
    say = options.say
    summary = summarize(report)
    yield f"# {say(words.TITLE)}: {escape(report.project)} → {escape(report.vendor)}"
    yield from ("", f"| {say(words.SUMMARY)} | |", "|---|---:|")
    yield row([say(words.SITES), str(summary.sites)])
    yield row([say(words.AUTOMATIC), f"{summary.automatic} ({summary.percent})"])
    yield from (row([say(name), str(value)]) for name, value in overview(report, summary))
    if not summary.findings:
        yield from ("", say(words.NOTHING_FOUND))
    else:
        yield from _rules(summary, options)
    failed = [record for record in report.files if record.status is FileStatus.FAILED]
    if failed:
        yield from ("", f"## {say(words.FILES_FAILED)} ({len(failed)})", "")
        yield from (f"- {code(record.path)}: {escape(record.reason)}" for record in failed)
    findings = in_order(report.findings)
    for kind in WORST_FIRST:
        chosen = [finding for finding in findings if finding.kind is kind]
        if chosen:
            name = say(words.KIND[kind].name)
            title = f"## {name[:1].upper()}{name[1:]} ({len(chosen)})"
            yield from ("", title, "", say(words.KIND[kind].meaning))
            yield from _by_file(chosen, options)


def _rules(summary: FindingsSummary, options: Options) -> Iterator[str]:
    names = [options.say(words.KIND[kind].name) for kind in WORST_FIRST]
    yield from ("", f"## {options.say(words.RULES)}", "")
    yield row([options.say(words.RULE), options.say(words.ABOUT), *names])
    yield "|---|---|" + "---:|" * len(names)
    for rule in summary.by_rule:
        example = " → ".join(code(text) for text in (rule.example.before, rule.example.after) if text)
        about = escape(options.about_rule(rule.rule)) or example
        yield row([escape(rule.rule), about, *(str(rule.counts.get(kind, 0) or "") for kind in WORST_FIRST)])


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

"""One self-contained HTML page: the report as JSON, and the style and script of assets/ that show it."""

from __future__ import annotations

from typing import Any

from torchferry import __version__
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import WORST_FIRST, in_order, summarize
from torchferry.report.formats import Options
from torchferry.report.html import asset, embed, enclosed, escaped, fill, head
from torchferry.report.json import picked
from torchferry.report.safe import visible, web_address

SCRIPTS = ("core.js", "filters.js", "diff.js", "views.js", "main.js")


def render(report: Report, options: Options) -> bytes:
    """The page; it holds both languages and opens in the one asked for."""
    style = "\n".join([asset("page.css"), asset("diff.css", __package__)])
    script = enclosed(*(asset(name, __package__) for name in SCRIPTS))
    title = escaped(f"{report.project} → {report.vendor} · TorchFerry")
    parts = {
        "HEAD": head(title, style, script, options.language),
        "DATA": embed(page_data(report, options)),
        "SCRIPT": script,
    }
    return fill(asset("page.html", __package__), parts).encode("utf-8")


def page_data(report: Report, options: Options) -> dict[str, Any]:
    """What the page shows, packed: sentences and paths are stored once and named by their position."""
    summary = summarize(report)
    files = _all_files(report)
    messages = _positions([finding.message for finding in report.findings])
    paths = _positions([record.path for record in files])
    rules = _positions([rule.rule for rule in summary.by_rule])
    return {
        "tool": f"TorchFerry {__version__}",
        "command": report.command,
        "vendor": visible(report.vendor),
        "project": visible(report.project),
        "language": options.language,
        "words": {
            **words.PAGE,
            "rule": words.RULE,
            "about": words.ABOUT,
            "total": words.TOTAL,
            "rules": words.RULES,
            "file": words.FILE,
            "kind": words.KIND_COLUMN,
        },
        "kinds": [
            {"id": kind.value, "name": words.KIND[kind].name, "meaning": words.KIND[kind].meaning}
            for kind in WORST_FIRST
        ],
        "statuses": {status.value: words.STATUS[status] for status in FileStatus},
        "summary": picked(
            summary,
            *("sites", "automatic", "percent", "todo", "unsupported", "unknown", "by_kind"),
            *("files_seen", "files_changed", "files_failed"),
        ),
        "rules": [
            {
                "id": visible(rule.rule),
                "about": options.rule_docs.get(rule.rule),
                "example": [visible(rule.example.before), visible(rule.example.after)],
                "counts": [rule.counts.get(kind, 0) for kind in WORST_FIRST],
            }
            for rule in summary.by_rule
        ],
        "messages": [[visible(message.en), visible(message.zh)] for message in messages],
        "files": [_file(record) for record in files],
        "findings": [
            [
                rules[finding.rule],
                WORST_FIRST.index(finding.kind),
                paths[finding.path],
                finding.line,
                finding.col,
                visible(finding.before),
                visible(finding.after),
                messages[finding.message],
                web_address(finding.url),
            ]
            for finding in in_order(report.findings)
        ],
    }


def _positions(values: list[Any]) -> dict[Any, int]:
    return {value: position for position, value in enumerate(dict.fromkeys(values))}


def _all_files(report: Report) -> list[FileRecord]:
    """The files of the report, and one for every finding about a file that has no record."""
    known = {record.path: record for record in report.files}
    for finding in report.findings:
        known.setdefault(finding.path, FileRecord(finding.path, FileStatus.UNCHANGED))
    return [known[path] for path in sorted(known)]


def _file(record: FileRecord) -> list[Any]:
    return [
        visible(record.path),
        record.status.value,
        visible(record.reason),
        [
            [
                hunk.old_start,
                hunk.new_start,
                [  # a line that stays is stored once
                    [tag, visible(old)] if tag == " " and old == new else [tag, visible(old), visible(new)]
                    for tag, old, new in hunk.lines
                ],
            ]
            for hunk in record.hunks
        ],
    ]

"""The page of findings: the work list, the files with their changes, the rules. Its data is JSON that the script shows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

from torchferry.finding import RuleDoc, Severity
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.report.bodies import PageBody
from torchferry.report.findings import words
from torchferry.report.findings.summary import FindingsSummary, in_order, summarize
from torchferry.report.findings.work_list import OPEN, WorkItem, WorkList, fingerprints, headline, work_list
from torchferry.report.formats import Options
from torchferry.report.html import (
    ARROW,
    CONTROLS,
    ELEMENTS,
    FOLDERS,
    TICKS,
    both,
    data_for_script,
    escaped,
    quiet,
)
from torchferry.report.safe import one_line, visible, web_address
from torchferry.text import Text

SCRIPTS = ("data.js", "filters.js", "diff.js", "work_list.js", "files.js", "rules.js", "main.js")
STYLES = ("findings.css", "diff.css")
_VIEWS = {"work": words.TAB_WORK, "files": words.TAB_FILES, "rules": words.RULES}
Value = TypeVar("Value", bound=Hashable)


def page_of(report: Report, options: Options) -> PageBody:
    """What the page shows."""
    summary, work = summarize(report), work_list(report)
    is_empty = not report.findings and not report.files
    return PageBody(
        kind="findings",
        title=f"{visible(report.project)} → {visible(report.vendor)}",
        heading=f"{escaped(report.project)}{ARROW}{escaped(report.vendor)}",
        overview=_overview(report, summary, work),
        sections=() if is_empty else (_controls(summary, work), _data(report, summary, work, options)),
        package=__package__,
        styles=STYLES,
        scripts=() if is_empty else (ELEMENTS, CONTROLS, TICKS, FOLDERS, *SCRIPTS),
    )


def _overview(report: Report, summary: FindingsSummary, work: WorkList) -> str:
    said = headline(work, report.command) if report.findings else words.NOTHING_FOUND
    left = next((severity for severity in OPEN if work.places[severity]), Severity.DONE)
    line = words.FILES_LINE if report.command == "convert" else words.FILES_LINE_SCAN
    files = line.format(
        seen=f"{summary.files_seen:,}",
        changed=f"{summary.files_changed:,}",
        failed=f"{summary.files_failed:,}",
    )
    kind = words.SEVERITY[left].kind
    return f'<div class="headline {kind}">{both(said, "h2")}{quiet(files)}</div>'


def _controls(summary: FindingsSummary, work: WorkList) -> str:
    tabs = "".join(
        f'<button type="button" data-view="{name}">{both(title)}<span class="count"></span></button>'
        for name, title in _VIEWS.items()
    )
    chips = "".join(
        f'<button type="button" class="chip {grade.kind}" data-severity="{severity.value}" aria-pressed="false">'
        f'{both(words.SEVERITY_HEADING[severity])}<span class="count"></span></button>'
        for severity, grade in words.SEVERITY.items()
        if work.of(severity)
    )
    rules = "".join(
        f'<option value="{escaped(rule.rule)}">{escaped(rule.rule)}</option>' for rule in summary.by_rule
    )
    search = (
        f'data-placeholder="{escaped("|".join(words.SEARCH))}" aria-label="{escaped(words.SEARCH_LABEL.en)}"'
    )
    views = "".join(f'<div id="view-{name}" hidden></div>' for name in _VIEWS)
    return (
        f'<nav class="tabs" id="tabs">{tabs}</nav>'
        '<form class="filters" id="filters" role="search" hidden>'
        f'<input type="search" id="query" {search} autocomplete="off" spellcheck="false">'
        f'<select id="rule" aria-label="{escaped(words.RULE.en)}"><option value=""></option>{rules}</select>'
        f'<div class="chips" id="severities">{chips}</div>'
        f'<button type="button" id="clear" class="plain">{both(words.CLEAR)}</button>'
        f'<button type="button" id="export" class="plain">{both(words.EXPORT)}</button></form>{views}'
    )


def _data(report: Report, summary: FindingsSummary, work: WorkList, options: Options) -> str:
    return data_for_script(page_data(report, summary, work, options), "findings-data")


def page_data(report: Report, summary: FindingsSummary, work: WorkList, options: Options) -> dict[str, Any]:
    """What the page shows, packed: sentences and paths are stored once and named by their position."""
    files = _all_files(report)
    ordered = in_order(report.findings)
    texts = _positions(
        text for finding in report.findings for text in (finding.title, finding.why, finding.do)
    )
    paths = _positions(record.path for record in files)
    rules = _positions(rule.rule for rule in summary.by_rule)
    item_of = {id(finding): at for at, item in enumerate(work.items) for finding in item.findings}
    names = dict(zip(map(id, ordered), fingerprints(ordered), strict=True))
    return {
        "key": f"{visible(report.project)}-{visible(report.vendor)}",
        "project": visible(report.project),
        "vendor": visible(report.vendor),
        "words": words.PAGE,
        "severities": [
            {
                "id": severity.value,
                "kind": grade.kind,
                "open": severity in OPEN,
                "name": grade.name,
                "heading": words.SEVERITY_HEADING[severity],
                "meaning": grade.meaning,
            }
            for severity, grade in words.SEVERITY.items()
        ],
        "statuses": {status.value: words.STATUS[status] for status in FileStatus},
        "rules": [
            {
                "id": visible(rule.rule),
                **_about(options.rule_docs.get(rule.rule)),
                "counts": [rule.severities.get(severity, 0) for severity in words.SEVERITY],
            }
            for rule in summary.by_rule
        ],
        "texts": [_shown(text) for text in texts],
        "files": [_file(record) for record in files],
        "items": [_item(item, rules, texts) for item in work.items],
        "findings": [
            [
                item_of[id(finding)],
                paths[finding.path],
                finding.line,
                finding.col,
                visible(finding.before),
                visible(finding.after),
                visible(finding.source),
                texts[finding.why],
                names[id(finding)],
            ]
            for finding in ordered
        ],
    }


def _about(doc: RuleDoc | None) -> dict[str, list[str]]:
    if doc is None:
        return {}
    return {"about": _shown(doc.summary), **({"detail": _shown(doc.about)} if doc.about.en else {})}


def _shown(text: Text) -> list[str]:
    return [one_line(text.en), one_line(text.zh or text.en)]


def _item(item: WorkItem, rules: dict[str, int], texts: dict[Text, int]) -> dict[str, Any]:
    first = item.first
    return {
        "rule": rules[item.rule],
        "severity": list(words.SEVERITY).index(item.severity),
        "title": texts[item.title],
        "why": texts[first.why],
        "does": texts[first.do],
        "url": web_address(first.url),
        "minutes": words.about_time(item.minutes) if item.minutes else None,
    }


def _positions(values: Iterable[Value]) -> dict[Value, int]:
    return {value: position for position, value in enumerate(dict.fromkeys(values))}


def _all_files(report: Report) -> Sequence[FileRecord]:
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

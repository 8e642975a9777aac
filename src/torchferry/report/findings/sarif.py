"""SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from torchferry import __version__
from torchferry.finding import Finding, Kind, Severity
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings.summary import RuleCount, summarize
from torchferry.report.findings.work_list import fingerprints
from torchferry.report.formats import Options
from torchferry.report.safe import path_bytes, printable, web_address

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {
    Severity.BLOCKER: "error",
    Severity.DECISION: "warning",
    Severity.CHECK: "note",
    Severity.DONE: "note",
    Severity.NOTE: "note",
}


def render(report: Report, options: Options) -> bytes:
    """The report as one SARIF run."""
    import json

    rules = summarize(report).by_rule
    index = {rule.rule: position for position, rule in enumerate(rules)}
    failed = [record for record in report.files if record.status is FileStatus.FAILED]
    run = {
        "tool": {
            "driver": {
                "name": "torchferry",
                "version": __version__,
                "rules": [_rule(rule, options) for rule in rules],
            }
        },
        "language": "zh-CN" if options.language == "zh" else "en",
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not failed,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": printable(record.reason) or FileStatus.FAILED.value},
                        "locations": [_location(record.path)],
                    }
                    for record in failed
                ],
                "properties": {
                    "command": report.command,
                    "vendor": report.vendor,
                    "project": printable(report.project),
                },
            }
        ],
        "results": [
            _result(finding, name, index[finding.rule], options)
            for finding, name in zip(report.findings, fingerprints(report.findings), strict=True)
        ],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return (json.dumps(log, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _rule(rule: RuleCount, options: Options) -> dict[str, Any]:
    worst = next(severity for severity in Severity if rule.severities.get(severity))
    doc = options.rule_docs.get(rule.rule)
    about = options.about_rule(rule.rule) or printable(rule.rule)
    example = rule.example
    help_text = "\n\n".join(
        printable(options.say(text)) for text in (example.title, example.why, example.do) if text.en
    )
    return {
        "id": printable(rule.rule),
        "shortDescription": {"text": about},
        "fullDescription": {"text": (options.say(doc.about) if doc else "") or about},
        "help": {"text": f"{help_text}\n\nferry rules {printable(rule.rule)}"},
        "defaultConfiguration": {"level": LEVELS[worst]},
    }


def _result(finding: Finding, fingerprint: str, rule_index: int, options: Options) -> dict[str, Any]:
    properties = {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "title": printable(options.say(finding.title)),
        "effort": finding.effort,
        "effort_each": finding.effort_each,
        "vendor": printable(finding.vendor),
        "before": printable(finding.before),
        "after": printable(finding.after),
    }
    if web_address(finding.url):
        properties["url"] = finding.url
    result = {
        "ruleId": printable(finding.rule),
        "ruleIndex": rule_index,
        "level": LEVELS[finding.severity],
        "message": {"text": printable(options.say(finding.message))},
        "locations": [_location(finding.path, _region(finding))],
        "partialFingerprints": {"torchferry/v1": fingerprint},
        "properties": properties,
    }
    return {**result, "fixes": [_fix(finding)]} if finding.kind is Kind.CHANGE and finding.before else result


def _fix(finding: Finding) -> dict[str, Any]:
    """The change, for editors that can make it."""
    region = _region(finding)
    region.pop("snippet", None)
    change = {"deletedRegion": region, "insertedContent": {"text": printable(finding.after)}}
    artifact = _location(finding.path)["physicalLocation"]["artifactLocation"]
    return {"artifactChanges": [{"artifactLocation": artifact, "replacements": [change]}]}


def _region(finding: Finding) -> dict[str, Any]:
    """Where the old text stands; to its end if it is known, else only where it starts."""
    line, column = max(finding.line, 1), max(finding.col, 1)
    region: dict[str, Any] = {"startLine": line, "startColumn": column}
    if finding.before:
        rows = finding.before.split("\n")
        region["endLine"] = line + len(rows) - 1
        region["endColumn"] = len(rows[-1]) + (column if len(rows) == 1 else 1)
        region["snippet"] = {"text": printable(finding.before)}
    return region


def _location(path: str, region: dict[str, Any] | None = None) -> dict[str, Any]:
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": quote(path_bytes(path)), "uriBaseId": "%SRCROOT%"}
    }
    if region:
        physical["region"] = region
    return {"physicalLocation": physical}

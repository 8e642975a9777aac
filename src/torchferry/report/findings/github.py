"""GitHub annotations: one workflow command a finding, the worst first because GitHub shows only a few."""

from __future__ import annotations

from torchferry.finding import Finding, Kind
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import WORST_FIRST, in_order
from torchferry.report.formats import Options
from torchferry.report.safe import printable

COMMANDS = {
    Kind.UNSUPPORTED: "error",
    Kind.TODO: "warning",
    Kind.UNKNOWN: "warning",
    Kind.RISK: "warning",
    Kind.CHANGE: "warning",
    Kind.INFO: "notice",
}


def render(report: Report, options: Options) -> bytes:
    """The report as workflow commands."""
    failed = [record for record in report.files if record.status is FileStatus.FAILED]
    findings = sorted(in_order(report.findings), key=lambda finding: WORST_FIRST.index(finding.kind))
    lines = [_failure(record, options) for record in failed]
    lines += [_annotation(finding, options) for finding in findings]
    return "".join(line + "\n" for line in lines).encode("utf-8")


def _annotation(finding: Finding, options: Options) -> str:
    title = f"{finding.rule} {options.say(words.KIND[finding.kind].name)}"
    place = f"file={_property(finding.path)},line={max(finding.line, 1)},col={max(finding.col, 1)}"
    message = options.say(finding.message)
    if finding.kind is Kind.CHANGE:
        message = f"{message}\n{finding.before} → {finding.after}"
    return f"::{COMMANDS[finding.kind]} {place},title={_property(title)}::{_data(message)}"


def _failure(record: FileRecord, options: Options) -> str:
    title = options.say(words.STATUS[record.status])
    return f"::error file={_property(record.path)},title={_property(title)}::{_data(record.reason or title)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

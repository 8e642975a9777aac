"""GitHub annotations: one workflow command a finding, the worst first because GitHub shows only a few."""

from __future__ import annotations

from torchferry.finding import Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.sarif import LEVELS
from torchferry.report.findings.summary import WORST_FIRST, in_order
from torchferry.report.formats import Options
from torchferry.report.safe import printable

COMMANDS = {**LEVELS, Kind.INFO: "notice"}


def render(report: Report, options: Options) -> bytes:
    """The report as workflow commands."""
    lines = []
    for record in report.files:
        if record.status is FileStatus.FAILED:
            title = options.say(words.STATUS[record.status])
            place = f"file={_property(record.path)},title={_property(title)}"
            lines.append(f"::error {place}::{_data(record.reason or title)}")
    for finding in sorted(in_order(report.findings), key=lambda finding: WORST_FIRST.index(finding.kind)):
        title = f"{finding.rule} {options.say(words.KIND[finding.kind].name)}"
        place = f"file={_property(finding.path)},line={max(finding.line, 1)},col={max(finding.col, 1)}"
        message = options.say(finding.message)
        if finding.kind is Kind.CHANGE:
            message = f"{message}\n{finding.before} → {finding.after}"
        lines.append(f"::{COMMANDS[finding.kind]} {place},title={_property(title)}::{_data(message)}")
    return "".join(line + "\n" for line in lines).encode("utf-8")


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

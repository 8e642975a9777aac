"""GitHub annotations: one workflow command for each place that a person has to look at, the worst first."""

from __future__ import annotations

from torchferry.finding import Severity
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.work_list import OPEN, headline, work_list
from torchferry.report.formats import Options
from torchferry.report.safe import printable

COMMANDS = {Severity.BLOCKER: "error", Severity.DECISION: "warning", Severity.CHECK: "notice"}


def render(report: Report, options: Options) -> bytes:
    """The report as workflow commands; the last one is the whole of it in one line."""
    lines = []
    for record in report.files:
        if record.status is FileStatus.FAILED:
            title = options.say(words.STATUS[record.status])
            place = f"file={_property(record.path)},title={_property(title)}"
            lines.append(f"::error {place}::{_data(record.reason or title)}")
    work = work_list(report)
    for item in work.of(*OPEN):
        for finding in item.findings:
            title = f"{finding.rule} {options.say(finding.title)}"
            place = f"file={_property(finding.path)},line={max(finding.line, 1)},col={max(finding.col, 1)}"
            parts = [options.say(text) for text in (finding.why, finding.do) if text.en]
            message = "\n".join(parts) or options.say(finding.title)
            lines.append(f"::{COMMANDS[item.severity]} {place},title={_property(title)}::{_data(message)}")
    if report.findings:
        lines.append(f"::notice title=TorchFerry::{_data(options.say(headline(work, report.command)))}")
    return "".join(line + "\n" for line in lines).encode("utf-8")


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

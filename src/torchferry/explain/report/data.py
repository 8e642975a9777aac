"""An explanation as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from torchferry.explain.model import Explanation, Finding, Frame, Log
from torchferry.explain.report.words import cause_of, clock, remedy_of
from torchferry.report.safe import printable
from torchferry.text import Text
from torchferry.vendors.error_patterns import ErrorPattern

FORMAT, VERSION = "torchferry-explanation", 1


def to_json(explanation: Explanation) -> str:
    """Everything, for programs; the findings are in order, `cause` is the number of the first error or null."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "cause": None if explanation.cause is None else 0,
        "surfaced": _frame(explanation.surfaced),
        "findings": [_finding(finding) for finding in explanation.ordered],
        "failures": [
            {"log": failure.log, "rank": failure.rank, "finding": explanation.ordered.index(failure.finding)}
            for failure in explanation.failures
        ],
        "logs": [_log(log) for log in explanation.logs],
        "unread": {printable(file): why for file, why in explanation.unread.items()},
    }
    return _written(content)


def codes_to_json(findings: Sequence[Finding]) -> str:
    """What a code means."""
    return _written({"format": FORMAT, "version": VERSION, "findings": [_finding(each) for each in findings]})


def rules_to_json(patterns: Sequence[ErrorPattern]) -> str:
    """All rules."""
    rules = [
        {
            "id": pattern.id,
            "kind": pattern.kind,
            "effect": pattern.effect.value,
            "regex": pattern.regex,
            "codes": list(pattern.codes),
            "cause": _both(pattern.cause),
            "remedy": _both(pattern.remedy),
            "source": pattern.source,
        }
        for pattern in sorted(patterns, key=lambda pattern: pattern.id)
    ]
    return _written({"format": FORMAT, "version": VERSION, "rules": rules})


def _written(content: object) -> str:
    return json.dumps(content, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, object]:
    pattern = finding.pattern
    return {
        "rule": finding.id or None,
        "kind": None if pattern is None else pattern.kind,
        "effect": finding.effect.value,
        "certain": finding.is_certain,
        "spoken_of": finding.is_spoken_of,
        "survived": finding.is_survived,
        "cause": None if pattern is None else _both(cause_of(finding)),
        "remedy": None if pattern is None else _both(remedy_of(finding)),
        "meaning": None if finding.meaning is None else _both(finding.meaning),
        "source": None if pattern is None else pattern.source,
        "log": finding.source,
        "line": finding.line or None,
        "rank": finding.rank,
        "process": printable(finding.writer) or None,
        "time": None if finding.time is None else clock(finding.time),
        "count": finding.count,
        "text": printable(finding.text),
        "before": list(map(printable, finding.before)),
        "frame": _frame(finding.frame),
    }


def _frame(frame: Frame | None) -> dict[str, object] | None:
    if frame is None:
        return None
    return {"file": printable(frame.file), "line": frame.line, "function": printable(frame.function)}


def _log(log: Log) -> dict[str, object]:
    launched = log.launched
    return {
        "name": printable(log.name),
        "rank": log.rank,
        "lines": log.lines,
        "bytes": log.bytes,
        "findings_left_out": log.left_out,
        "lines_only_counted": log.only_counted,
        "damage": log.damage or None,
        "launcher": None
        if launched is None
        else {"rank": launched.rank, "exit_code": launched.exit_code, "time": launched.time},
    }


def _both(text: Text) -> dict[str, str]:
    return {"en": printable(text.en), "zh": printable(text.zh)}

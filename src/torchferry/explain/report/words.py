"""The sentences of an explanation: cause and remedy of a finding, with what was found in them."""

from __future__ import annotations

import re
from datetime import datetime

from torchferry.explain.model import Explanation, Finding
from torchferry.text import Text

_PLACE = re.compile(r"\{([\w|]+)\}")
_LONGEST = 300
_NO_RULE = Text("no rule knows this message", "没有规则认识该信息")
_NOT_KNOWN_REMEDY = Text(
    "read the lines before it; what comes later are mostly consequences",
    "查看其之前的各行；之后的错误多为后果",
)

_LOOK_BEFORE = Text(
    "the traceback has lines of libraries only; read the lines before it; what comes later in the log are mostly consequences",
    "调用栈中只有库的代码；查看其之前的各行；日志中之后的错误多为后果",
)
_LOOK_AT_LINE = Text(
    "look at {file}:{line} and at what is used there; what comes later in the log are mostly consequences",
    "查看 {file}:{line} 及其所用的数据；日志中之后的错误多为后果",
)


def cause_of(finding: Finding) -> Text:
    """Why the message appears."""
    if finding.pattern is None:
        return _NO_RULE
    return _filled(finding.pattern.cause, finding)


def remedy_of(finding: Finding) -> Text:
    """What to do about it."""
    if finding.pattern is None:
        frame = finding.frame
        if frame is None or frame.is_library:
            return _NOT_KNOWN_REMEDY if frame is None else _LOOK_BEFORE
        return _LOOK_AT_LINE.format(file=frame.file, line=frame.line)
    return _filled(finding.pattern.remedy, finding)


def _filled(text: Text, finding: Finding) -> Text:
    meaning = finding.meaning or Text("", "")

    def fill(said: str, known: str) -> str:
        values = {**finding.groups, "meaning": known}
        return _PLACE.sub(lambda match: next(filter(None, map(values.get, match[1].split("|"))), "…"), said)

    return Text(fill(text.en, meaning.en), fill(text.zh, meaning.zh))


def place_of(explanation: Explanation, finding: Finding) -> str:
    """file:line, and the rank."""
    name = explanation.logs[finding.source].name if explanation.logs else ""
    place = f"{name}:{finding.line}" if name else ""
    process = (
        f"[{finding.writer}]" if finding.writer else "" if finding.rank is None else f"[rank {finding.rank}]"
    )
    return " ".join(filter(None, [place, process]))


def clock(seconds: float) -> str:
    """A time of a log."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "milliseconds")


def shown(text: str) -> str:
    """A line of a log, if need be only its beginning."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"

"""What a line says of itself: whether it is an error, and whether a known message in it is only spoken of."""

from __future__ import annotations

import re
from enum import IntEnum

from torchferry.explain.lines import Level, level_of, without_logger
from torchferry.explain.tracebacks import HEAD


class Strength(IntEnum):
    """How sure it is that a line is an error."""

    NONE = 0
    MARK = 1  # no error itself, but one is near
    WEAK = 2  # it only calls itself an error
    CERTAIN = 3  # a process ends with it


_CERTAIN = re.compile(
    r"^\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout): "
    r"|^(?:Segmentation fault|Aborted|Killed|Bus error|Floating point exception|Illegal instruction|Terminated)"
    r"(?: \(core dumped\))?(?:\s{2,}.*)?$"
    r"|\(core dumped\)|^Fatal Python error|terminate called after throwing|free\(\): invalid|double free or corruption"
    r"|\*\*\* (?:Process received signal|Aborted at)|\bCheck failed: "
)
# `error: text` of compilers and of argparse; a number or a setting behind it makes it a metric or a configuration.
_WEAK = re.compile(
    r"^(?:[\w./-]{1,100}(?::\d+)*: )?(?:fatal )?(?:[Ee]rror|ERROR|FATAL)\b ?: ?(?P<said>.*)"
    r"|^(?:[\w./-]{1,60}: |\[[\w.: /-]{1,60}\] )*\[?(?:ERROR|Error|FATAL|CRITICAL)\]?(?::|\s)(?P<told>.*)"
)
_NO_MESSAGE = re.compile(
    r"\s*(?:[-+]?[\d.]|(?:[Tt]rue|[Ff]alse|[Nn]one|[Nn]ull|nan|inf|ignore|raise|continue|yes|no|off|on)\b|$)"
)
_MARKS = (HEAD, "Root Cause (first observed failure)")
_NONE_OF = re.compile(r"\b(?:0|no|No|without) (?:errors?|failures?)\b")
# The program goes on, by its own words.
_WENT_ON = re.compile(
    r"\bretrying\b|\bretry (?:in|after|\d)|\breconnecting\b|\bf(?:alling|alls|all) ?back\b|\bskipp(?:ed|ing)\b|\bignor(?:ed|ing)\b"
    r"|, using |; using |: using |\busing \w+ instead\b|\bwill be (?:ignored|skipped|disabled)\b",
    re.I,
)
# A variable and its value, or a line of an object that is printed: nothing happens there.
_SETTING = re.compile(r"^\s*(?:export |declare -x )?[A-Za-z_]\w* ?[=:] ?\S+$|^\s*[{\[(]?\s*['\"]\w+['\"]: ")
_QUOTED = re.compile(r"`[^`]*`|\"(?:[^\"\\]|\\.)*\"")
_LEVEL_IN_JSON = re.compile(
    r"['\"](?:level|levelname|severity|log\.level)['\"]: ?['\"](?:error|fatal|critical)", re.I
)


def strength_of(text: str) -> Strength:
    """How sure it is that this line, without rank and colours, is an error."""
    message, level = without_logger(text), level_of(text)
    if level is Level.MILD:
        return Strength.MARK if any(mark in text for mark in _MARKS) else Strength.NONE
    if _CERTAIN.search(message) or level is Level.FATAL:
        return Strength.WEAK if _WENT_ON.search(message) else Strength.CERTAIN
    if any(mark in text for mark in _MARKS):
        return Strength.MARK
    if _NONE_OF.search(text):
        return Strength.NONE
    match = _WEAK.match(message)
    says = match is not None and not _NO_MESSAGE.match(match["said"] or match["told"] or "")
    return Strength.WEAK if says or (level is Level.ERROR and message) else Strength.NONE


def is_spoken_of(text: str, place: tuple[int, int]) -> bool:
    """Whether a line only speaks of the error whose words stand at `place`: it is a warning or less, the program says
    that it goes on, or the words are a setting's value or a quotation."""
    level = level_of(text)
    if level is Level.MILD or _WENT_ON.search(text):
        return True
    if level is not Level.NONE or _LEVEL_IN_JSON.search(text) or _CERTAIN.search(text):
        return False
    start, end = place
    quoted = (match.span() for match in _QUOTED.finditer(text))
    return bool(_SETTING.match(text)) or any(opens < start and end < closes for opens, closes in quoted)

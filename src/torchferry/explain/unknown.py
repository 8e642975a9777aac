"""Which lines speak of an error that no rule knows."""

from __future__ import annotations

import re
from enum import IntEnum

from torchferry.explain.tracebacks import HEAD


class Strength(IntEnum):
    """How sure it is that a line is an error."""

    NONE = 0
    MARK = 1  # no error itself, but one is near
    WEAK = 2  # it only calls itself an error
    CERTAIN = 3  # a process ends with it


_CERTAIN = re.compile(
    r"^\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout): "
    r"|^(?:Segmentation fault|Aborted|Killed|Bus error|Floating point exception|Illegal instruction)\b"
    r"|\(core dumped\)|^Fatal Python error|terminate called after throwing|free\(\): invalid|double free or corruption"
    r"|\*\*\* (?:Process received signal|Aborted at)"
)
_WEAK = re.compile(
    r"(?:^|[\s\[|<(:\]-])(?:ERROR|FATAL|CRITICAL)(?=[\s\]|>):,-]|$)"
    r"|(?:^|\[)[EF]\d{0,4} \d{0,2}:"  # glog
    r"|\b(?:fatal )?[Ee]rror: |\bERROR: "
)
_MARKS = (HEAD, "Root Cause (first observed failure)")
_NONE_OF = re.compile(r"\b(?:0|no|No|without) (?:errors?|failures?)\b")


def strength_of(text: str) -> Strength:
    """How sure it is that this line, without rank and colours, is an error."""
    if _CERTAIN.search(text):
        return Strength.CERTAIN
    if any(mark in text for mark in _MARKS):
        return Strength.MARK
    if _WEAK.search(text) and not _NONE_OF.search(text):
        return Strength.WEAK
    return Strength.NONE

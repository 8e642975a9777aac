"""Which rule fits a line. Lines that differ only in numbers are looked at once, for logs repeat themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from torchferry.explanation.lines import HEAD, LogLevel, clean, level_of, without_logger
from torchferry.text import Text
from torchferry.vendors.error_patterns import ErrorPattern, ErrorTable, load_errors
from torchferry.vendors.registry import get_vendor, vendor_names

# What a line says of itself: whether it is an error, and whether a known message in it is only spoken of.


class RuleStrength(IntEnum):
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


def strength_of(text: str) -> RuleStrength:
    """How sure it is that this line, without rank and colours, is an error."""
    message, level = without_logger(text), level_of(text)
    if level is LogLevel.MILD:
        return RuleStrength.MARK if any(mark in text for mark in _MARKS) else RuleStrength.NONE
    if _CERTAIN.search(message) or level is LogLevel.FATAL:
        return RuleStrength.WEAK if _WENT_ON.search(message) else RuleStrength.CERTAIN
    if any(mark in text for mark in _MARKS):
        return RuleStrength.MARK
    if _NONE_OF.search(text):
        return RuleStrength.NONE
    match = _WEAK.match(message)
    says = match is not None and not _NO_MESSAGE.match(match["said"] or match["told"] or "")
    return RuleStrength.WEAK if says or (level is LogLevel.ERROR and message) else RuleStrength.NONE


def is_spoken_of(text: str, place: tuple[int, int]) -> bool:
    """Whether a line only speaks of the error whose words stand at `place`: it is a warning or less, the program says
    that it goes on, or the words are a setting's value or a quotation."""
    level = level_of(text)
    if level is LogLevel.MILD or _WENT_ON.search(text):
        return True
    if level is not LogLevel.NONE or _LEVEL_IN_JSON.search(text) or _CERTAIN.search(text):
        return False
    start, end = place
    quoted = (match.span() for match in _QUOTED.finditer(text))
    return bool(_SETTING.match(text)) or any(opens < start and end < closes for opens, closes in quoted)


_SHAPES = 1 << 22  # bytes of the forms that are remembered; then all are forgotten
_OVERHEAD = 200
_ANY_CODE = "*"
_NUMBER = re.compile(r"(?<!\{)(?:\\d|\d)+(?:\{[\d,]+\}|[+*])?(?![\d,]*\})")


@dataclass(frozen=True)
class RuleMatch:
    """A rule that fits, and what it found."""

    pattern: ErrorPattern
    groups: dict[str, str]
    meaning: Text | None = None
    place: tuple[int, int] = (0, 0)  # in the line


class ReadyRule(NamedTuple):
    """A rule, ready for use."""

    pattern: ErrorPattern
    form: re.Pattern[str]
    shape: re.Pattern[str]  # fits every line that differs only in numbers from one that `form` fits
    frames: re.Pattern[str] | None  # of the files that the exception must have gone through

    def is_from(self, files: Sequence[str]) -> bool:
        """Whether an exception that went through these files may be meant."""
        return self.frames is None or any(map(self.frames.search, files))


@dataclass(frozen=True, eq=False)
class Shape:
    """What is known of all lines that are alike but for their numbers."""

    patterns: tuple[ReadyRule, ...]
    has_code: bool
    strength: RuleStrength

    @property
    def has_rules(self) -> bool:
        return self.has_code or bool(self.patterns)

    @property
    def is_plain(self) -> bool:
        """Whether all lines of this form say the same: no number in them matters, and no operator is named."""
        numbers_matter = any(
            "op" in entry.form.groupindex or entry.form.pattern != entry.shape.pattern
            for entry in self.patterns
        )
        return not self.has_code and not numbers_matter


class RuleBook:
    """The rules of some vendors, in the order in which to try them."""

    def __init__(self, tables: Sequence[ErrorTable]) -> None:
        unique = {pattern.id: pattern for table in tables for pattern in table.patterns}
        self.patterns = sorted(unique.values(), key=_order)
        self._entries = [_entry(pattern) for pattern in self.patterns if pattern.regex]
        self._code_tables = [(table, [re.compile(form) for form in table.code_forms]) for table in tables]
        self._code_shapes = [
            re.compile(_without_numbers(form)) for table in tables for form in table.code_forms
        ]
        self._shapes: dict[bytes, Shape | None] = {}
        self._remembered = 0

    def is_known(self, form: bytes) -> bool:
        """Whether a line of this form has been looked at, as far as that is remembered."""
        return form in self._shapes

    def shape(self, line: bytes, form: bytes) -> Shape | None:
        """What the line's form says; None if it speaks of no error."""
        try:
            return self._shapes[form]
        except KeyError:
            pass
        self._remembered += len(form) + _OVERHEAD
        if self._remembered > _SHAPES:
            self._shapes.clear()
            self._remembered = 0
        found = self._shapes[form] = self._look_at(clean(line).text)
        return found

    def _look_at(self, text: str) -> Shape | None:
        patterns = tuple(entry for entry in self._entries if entry.shape.search(text))
        has_code = any(form.search(text) for form in self._code_shapes)
        strength = strength_of(text)
        return Shape(patterns, has_code, strength) if patterns or has_code or strength else None

    def match(self, text: str, shape: Shape, files: Sequence[str] = ()) -> RuleMatch | None:
        """The rule that fits a line of this form best; `files` are those of the traceback that the line ends."""
        found: list[RuleMatch] = []
        for entry in shape.patterns:
            match = entry.form.search(text) if entry.is_from(files) else None
            if match:
                groups = {name: value for name, value in match.groupdict().items() if value}
                found.append(RuleMatch(entry.pattern, groups, None, match.span()))
                break
        for table, forms in self._code_tables if shape.has_code else ():
            for code in (code for form in forms for code in form.finditer(text)):
                found += _of_code(table, code[1], code.span(1))
        return min(found, key=lambda match: _order(match.pattern), default=None)

    def code(self, code: str) -> list[RuleMatch]:
        """What a code alone means, for each vendor that has it."""
        return [match for table, _ in self._code_tables for match in _of_code(table, code)]

    def explain(self, text: str, files: Sequence[str] = ()) -> RuleMatch | None:
        """The best rule for one line."""
        shape = self._look_at(text)
        return None if shape is None else self.match(text, shape, files)


def rule_book(vendors: Sequence[str] = (), extra: Sequence[Path] = ()) -> RuleBook:
    """The rules of these vendors, or of all, and those that hold for every one."""
    names = vendors or vendor_names(extra)
    return RuleBook([load_errors(Path(get_vendor(name, extra).folder)) for name in names])


def is_better(one: ErrorPattern, other: ErrorPattern) -> bool:
    """Whether a rule says more about what happened than another."""
    return _order(one) < _order(other)


def _order(pattern: ErrorPattern) -> tuple[int, bool]:
    return pattern.rank, pattern.any_vendor


def _of_code(table: ErrorTable, code: str, place: tuple[int, int] = (0, 0)) -> list[RuleMatch]:
    """The rule for a code; where no rule names it, the one for all codes with a known meaning."""
    fitting = [pattern for pattern in table.patterns if code in pattern.codes]
    if not fitting and code in table.codes:
        fitting = [pattern for pattern in table.patterns if _ANY_CODE in pattern.codes]
    return [RuleMatch(pattern, {"code": code}, table.codes.get(code), place) for pattern in fitting[:1]]


def _entry(pattern: ErrorPattern) -> ReadyRule:
    frames = re.compile(pattern.frames) if pattern.frames else None
    try:
        shape = re.compile(_without_numbers(pattern.regex))
    except re.error:  # a number in it is no number of the line
        shape = re.compile("")
    return ReadyRule(pattern, re.compile(pattern.regex), shape, frames)


def _without_numbers(regex: str) -> str:
    """The pattern with any number, or none, where it has one."""
    return _NUMBER.sub(r"\\d*", regex)

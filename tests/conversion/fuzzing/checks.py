"""What must hold for every conversion, whatever the input."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from enum import Enum

from tests.conversion.fuzzing.cases import PATH, Case
from torchferry.conversion.project import FileOutcome, convert_file
from torchferry.finding import Kind
from torchferry.outcome import FileStatus
from torchferry.source.decode import decode

_MOVES_LINES = frozenset({"amp", "apex", "distributed", "channels_last", "drop_cudnn_flags", "similar"})


class Result(Enum):
    """What became of a case."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    GIVEN_UP = "given up"  # reported, and left as it was
    OPTION_LEFT_OUT = "option left out"  # converted, but without one of the options
    BROKEN = "broken"


def check(case: Case) -> tuple[Result, str]:
    """Convert a case and look at what came out; the text says what is wrong, or why it was given up."""
    outcome = convert_file(PATH, case.data, case.job())
    if outcome.record.status is FileStatus.FAILED:
        is_crash = "please report" in outcome.record.reason
        return Result.BROKEN if is_crash else Result.GIVEN_UP, outcome.record.reason
    if outcome.new_data is None:
        return Result.UNCHANGED, ""
    problem = next(_problems(case, outcome), "")
    if problem:
        return Result.BROKEN, problem
    left_out = next((item.message.en for item in outcome.findings if item.rule == "TF905"), "")
    if left_out:
        return (Result.BROKEN if "please report" in left_out else Result.OPTION_LEFT_OUT), left_out
    return Result.CHANGED, ""


def _problems(case: Case, outcome: FileOutcome) -> Iterator[str]:
    new = outcome.new_data or b""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(new)
    except (SyntaxError, ValueError) as error:
        yield f"the result does not parse: {error}"
    again = convert_file(PATH, new, case.job())
    if again.new_data is not None or again.record.status is FileStatus.FAILED:
        yield f"a second conversion changes the result {again.record.reason}"
    if _MOVES_LINES.isdisjoint(case.options):
        yield from _touched(case.data, new, outcome)


def _touched(old: bytes, new: bytes, outcome: FileOutcome) -> Iterator[str]:
    """Lines that no change was announced for, and that are not there any more, byte for byte and in their order."""
    changed: set[int] = set()
    for finding in outcome.findings:
        if finding.kind is Kind.CHANGE:
            changed.update(
                range(finding.line, finding.line + len(re.findall("\r\n|\r|\n", finding.before)) + 1)
            )
    # The names of a long import are what is said to change; the module that they come from stands above them.
    head = re.compile(rb"\s*from torch[\w.]* import \(")
    lines = iter(_lines(new))
    for number, line in enumerate(_lines(old), start=1):
        if number not in changed and not head.match(line) and not any(_is_same(line, item) for item in lines):
            yield f"line {number} was not to be changed: {line!r}"


def _is_same(line: bytes, other: bytes) -> bool:
    """Byte for byte; a last line without an ending may have got one, with a line below."""
    return line == other or (not line.endswith((b"\r", b"\n")) and line == other.rstrip(b"\r\n"))


def _lines(data: bytes) -> list[bytes]:
    """Lines as Python counts them, with their endings."""
    return decode(data).text.encode("utf-8").splitlines(keepends=True)

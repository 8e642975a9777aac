"""Lines that need no closer look: logs may hold millions that say the same, or more errors than anyone reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from torchferry.explanation.lines import HEAD
from torchferry.explanation.model import FoundMessage, Log
from torchferry.explanation.rules import RuleBook, Shape
from torchferry.explanation.scanning import has_word
from torchferry.vendors.error_patterns import Effect

# The findings of one log: each with its first place, how often it came again, and what belongs
# together.

MOST = 300  # findings of one log that are kept
MOST_UNKNOWN = 200  # of which no rule knows; there must be room for the others
_NEAR = 40  # lines between two errors of one episode
_SURVIVED = 500  # lines without an error: whatever happened before, the program went on
_FAILURES = (Effect.ERROR, Effect.CONSEQUENCE)


class Findings:
    """Those of one log, by keys that are equal for what says the same."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._found: dict[object, FoundMessage] = {}
        self._last_lines: dict[object, int] = {}
        self._last_error = -_NEAR
        self._survived_until = 0  # the last line of the errors after which the program went on
        self.episode = 0

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def get(self, key: object) -> FoundMessage | None:
        """None if it is not kept."""
        return self._found.get(key)

    @property
    def is_full(self) -> bool:
        """Whether no further error that no rule knows is kept."""
        return len(self._found) >= MOST_UNKNOWN

    def note_error(self, number: int) -> None:
        """An error, or the end of the log, is at this line."""
        apart = number - self._last_error
        self._last_error = number
        if apart > _NEAR:
            self.episode += 1
            if apart > _SURVIVED:
                self._survived_until = max(0, number - apart)

    def note_errors(self, numbers: Iterable[int]) -> None:
        """Errors are at these lines."""
        last = self._last_error
        for number in numbers:
            if number - last > _NEAR:
                self._last_error = last
                self.note_error(number)
            last = number
        self._last_error = last

    def note_run(self, first: int, last: int) -> None:
        """All lines from the first to the last are errors."""
        self.note_error(first)
        self._last_error = last

    def again(self, key: object, number: int) -> bool:
        """Whether this is known already; then it is counted."""
        if key not in self._found:
            return False
        self.add(key, 1, number)
        if self.is_failure(key):
            self.note_error(number)
        return True

    def add(self, key: object, count: int, number: int) -> None:
        """One that is kept came again, the last time at this line."""
        self._found[key].count += count
        self._last_lines[key] = number

    def is_failure(self, key: object) -> bool:
        """Whether one that is kept may end a program, or follow from what did."""
        finding = self._found[key]
        return not finding.is_spoken_of and finding.effect in _FAILURES

    def keep(self, key: object, finding: FoundMessage, last_line: int) -> None:
        """A new one."""
        if len(self._found) >= MOST:
            self._log.left_out += 1
            return
        self._found[key] = finding
        self._last_lines[key] = last_line

    def leave_out(self, number: int) -> None:
        """An error for which there is no room."""
        self._log.left_out += 1
        self.note_error(number)

    def take_back(self, key: object) -> None:
        """What was counted last under this key is something else."""
        finding = self._found[key]
        finding.count -= 1
        if not finding.count:
            del self._found[key]

    def finish(self) -> None:
        """All lines were read: put what was found into the log."""
        self.note_error(self._log.lines)
        for key, finding in self._found.items():
            finding.lines_after = self._log.lines - self._last_lines[key]
            finding.is_survived = self._last_lines[key] <= self._survived_until
        self._log.findings = list(self._found.values())


MOST_FORMS = 2_000  # in crowds of error lines; of more, only the number is of interest
MOST_TRACEBACKS = 1_000
_ENOUGH = 1_000  # lines of one form that were all the same finding, though a number in them may matter
_MOST_SILENT = 1 << 14
_HEAD = HEAD.encode()
# The process that a line names, behind the time that a container's runtime has put there.
_PROCESS = re.compile(
    rb"(?:20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\S* (?:std(?:out|err) [FP] )?)?"
    rb"(\[[a-z0-9][^\]]*\]|(?:\([^)]*\) ?)+|[\w.-]{1,80} +\||)"
)


class Repetitions:
    """Which lines say what was found before; the sieve of a log."""

    def __init__(self, book: RuleBook, findings: Findings) -> None:
        self._book = book
        self._findings = findings
        self._silent: set[bytes] = set()  # forms of lines that speak of no error
        # Forms of lines that name no process -> the finding that they all are.
        self._same: dict[bytes, object] = {}
        self._same_of_process: dict[tuple[bytes, bytes], object] = {}  # the process, the form
        self._seen: Counter[tuple[bytes, object]] = Counter()
        self._forms_left = MOST_FORMS
        self._tracebacks_left = MOST_TRACEBACKS
        self._is_in_traceback = False  # that is not looked at
        self.only_counted = 0
        self.has_tasks = False

    def renew(self) -> None:
        """The log's end begins: it may hold what the first errors led to."""
        self._forms_left = MOST_FORMS
        self._tracebacks_left = MOST_TRACEBACKS

    def passes_all(self, forms: list[bytes], number: int) -> bool:
        """Whether all these lines are of known forms, or come behind too many others; then they are counted in one go."""
        distinct = set(forms)
        repeated = self._same.keys() & distinct
        others = [form for form in distinct if form not in repeated and form not in self._silent]
        if others and (self._forms_left > 0 or any(map(self._may_matter, others))):
            return False
        beyond = set(filter(has_word, others))
        failing = beyond | {form for form in repeated if self._findings.is_failure(self._same[form])}
        if len(failing) == len(distinct):
            self._findings.note_run(number, number + len(forms) - 1)
        else:
            self._findings.note_errors([at for at, form in enumerate(forms, number) if form in failing])
        for form in repeated:
            last = len(forms) - 1 - forms[::-1].index(form)
            self._findings.add(self._same[form], forms.count(form), number + last)
        self.only_counted += sum(form in beyond for form in forms) if beyond else 0
        return True

    def _may_matter(self, form: bytes) -> bool:
        """Whether a line of this form may be more than one error too many."""
        return _HEAD in form or self._book.is_known(form)

    def passes(self, line: bytes, form: bytes, number: int) -> bool:
        """Of a line in a crowd: whether it speaks of no error, repeats one, or comes behind too many others."""
        if form in self._silent or self.count(line, form, number):
            return True
        if self._is_silent(line, form):
            return True
        if self._is_in_traceback or _HEAD in line:
            return self._tracebacks_left <= 0 and self.skips(line)
        if self._has_room(line, form):
            return False
        self.only_counted += 1
        if b"rror" in form or b"RROR" in form:
            self._findings.note_errors([number])
        return True

    def skips(self, line: bytes) -> bool:
        """Whether the line belongs to a traceback that comes behind too many others."""
        if _HEAD in line:
            self._tracebacks_left -= 1
            self._is_in_traceback = self._tracebacks_left < 0
            self.only_counted += self._is_in_traceback
            return self._is_in_traceback
        was_in_traceback = self._is_in_traceback
        self._is_in_traceback = was_in_traceback and line[:1].isspace()
        return was_in_traceback

    def _is_silent(self, line: bytes, form: bytes) -> bool:
        if has_word(form) and not (self._book.is_known(form) and self._book.shape(line, form) is None):
            return False
        if len(self._silent) >= _MOST_SILENT:
            self._silent.clear()
        self._silent.add(form)
        return True

    def _has_room(self, line: bytes, form: bytes) -> bool:
        """Whether an error may still be looked at."""
        shape = self._book.shape(line, form) if self._book.is_known(form) else None
        if shape is not None:
            return shape.has_rules or not self._findings.is_full
        self._forms_left -= 1
        return self._forms_left >= 0

    def count(self, line: bytes, form: bytes, number: int) -> bool:
        """Whether a line that says the same has been looked at; then it is counted."""
        key = self._same.get(form)
        if key is None and self._same_of_process:
            key = self._same_of_process.get((self._process(line) or b"", form))
        return key is not None and self._findings.again(key, number)

    def remember(self, line: bytes, form: bytes, shape: Shape, key: object) -> None:
        """A line that was looked at is this finding."""
        if key not in self._findings:
            return
        if len(self._seen) > MOST:
            self._seen.clear()
        self._seen[form, key] += 1
        process = self._process(line)
        if process is None or not (shape.is_plain or self._seen[form, key] > _ENOUGH):
            return
        if len(self._same) + len(self._same_of_process) >= MOST:
            self._same.clear()
            self._same_of_process.clear()
        if process:
            self._same_of_process[process, form] = key
        else:
            self._same[form] = key

    def _process(self, line: bytes) -> bytes | None:
        """The part of a line that names its process, if any; None if it can't be told at a glance."""
        if self.has_tasks or line.startswith(b"\x1b"):
            return None
        match = _PROCESS.match(line)
        return match[1] if match else b""

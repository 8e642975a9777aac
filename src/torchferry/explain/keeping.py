"""The findings of one log: each with its first place, how often it came again, and what belongs together."""

from __future__ import annotations

from collections.abc import Iterable

from torchferry.explain.model import Finding, Log
from torchferry.vendors.error_patterns import Effect

MOST = 300  # findings of one log that are kept
MOST_UNKNOWN = 200  # of which no rule knows; there must be room for the others
_NEAR = 40  # lines between two errors of one episode
_SURVIVED = 500  # lines without an error: whatever happened before, the program went on
_FAILURES = (Effect.ERROR, Effect.CONSEQUENCE)


class Findings:
    """Those of one log, by keys that are equal for what says the same."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._found: dict[object, Finding] = {}
        self._last_lines: dict[object, int] = {}
        self._last_error = -_NEAR
        self._survived_until = 0  # the last line of the errors after which the program went on
        self.episode = 0

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def get(self, key: object) -> Finding | None:
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

    def keep(self, key: object, finding: Finding, last_line: int) -> None:
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

"""Finds the smallest arguments with which an operator still fails in the same way. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from torchferry.ops.cases.describing import described_call
from torchferry.ops.cases.model import Case, Kind, Outcome
from torchferry.ops.cases.simplifying import PASSES, Pass

MOST_TRIALS = 2000
AGAIN = 2  # how often what was found has to fail once more
MOST_DEATHS = 50  # each costs a new process, or the time that a case may take

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+(\.\d+)?(e[+-]?\d+)?")
_LIST = re.compile(r"#(?:(?:, *|x)#)+")  # sizes: there are fewer of them where a dimension is gone

Try = Callable[[Case], Outcome]
Progress = Callable[[int, Case], None]


@dataclass(frozen=True)
class Smallest:
    """What was found."""

    case: Case
    outcome: Outcome
    trials: int
    complete: bool  # False: the trials were used up before nothing could be made smaller
    steady: bool = (
        True  # False: the same case does not fail every time, and what was found may not be the smallest
    )


def shrink(
    case: Case, outcome: Outcome, attempt: Try, progress: Progress | None = None, most: int = MOST_TRIALS
) -> Smallest:
    """Make the case simpler, step by step, as long as it fails in the same way; the same case gives the same result."""
    search = _Search(case, outcome, attempt, progress, most)
    while any(search.improve(each) for each in PASSES) and search.has_trials_left:
        pass
    complete = search.has_trials_left
    return Smallest(search.case, search.outcome, search.trials, complete, search.fails_again())


def failure_key(outcome: Outcome) -> tuple[str, ...]:
    """What two outcomes have in common that are the same failure: messages but for their numbers."""
    if outcome.kind is Kind.DIFFERS:
        return (outcome.kind.value, outcome.check, outcome.aspect)
    if outcome.kind is Kind.RAISES:
        return (outcome.kind.value, outcome.check, _LIST.sub("#", _NUMBER.sub("#", outcome.message)))
    if outcome.kind is Kind.HANGS:
        return (outcome.kind.value,)
    return (outcome.kind.value, outcome.message.partition(":")[0])


class _Search:
    """The smallest case so far, and what was tried."""

    def __init__(
        self, case: Case, outcome: Outcome, attempt: Try, progress: Progress | None, most: int
    ) -> None:
        self.case = case
        self.outcome = outcome
        self.trials = 0
        self._wanted = failure_key(outcome)
        self._attempt = attempt
        self._progress = progress
        self._most = most
        self._deaths = 0
        self._tried: set[str] = {described_call(case)}

    @property
    def has_trials_left(self) -> bool:
        """Whether another case may be tried."""
        return self.trials < self._most and self._deaths < MOST_DEATHS

    def improve(self, simpler: Pass) -> bool:
        """Take the first simpler case that fails alike, again and again; whether there was one."""
        improved = False
        while self._step(simpler):
            improved = True
        return improved

    def fails_again(self) -> bool:
        """Whether the case fails alike whenever it is run."""
        for _ in range(AGAIN):
            outcome = self._attempt(self.case)
            if failure_key(outcome) != self._wanted:
                return False
        return True

    def _step(self, simpler: Pass) -> bool:
        for candidate in simpler(self.case):
            if not self.has_trials_left:
                return False
            if self._fails_alike(candidate):
                self.case = candidate
                return True
        return False

    def _fails_alike(self, candidate: Case) -> bool:
        text = described_call(candidate)
        if text in self._tried:
            return False
        self._tried.add(text)
        self.trials += 1
        if self._progress is not None:
            self._progress(self.trials, self.case)
        outcome = self._attempt(candidate)
        self._deaths += outcome.kind in (Kind.CRASHES, Kind.HANGS)
        if failure_key(outcome) != self._wanted:
            return False
        self.outcome = outcome
        return True

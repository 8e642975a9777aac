"""The steps of two runs side by side, shortened in the middle, for the tables of the reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from torchferry.proof.model import ProcessSummary, ProgramRun, Proof, StepSummary, VendorResult
from torchferry.proof.report import words
from torchferry.text import Text


@dataclass(frozen=True)
class StepPair:
    """One step in both runs."""

    number: int
    reference: StepSummary | None
    migrated: StepSummary | None

    @property
    def parameters_equal(self) -> bool | None:
        """None where one of the runs has no such step."""
        if self.reference is None or self.migrated is None:
            return None
        return self.reference.checksum == self.migrated.checksum

    @property
    def losses_equal(self) -> bool:
        """Bit for bit, as far as numbers show it; two that are not a number are equal."""
        ours, theirs = losses(self.reference), losses(self.migrated)
        return len(ours) == len(theirs) and all(
            one == other or (math.isnan(one) and math.isnan(other))
            for one, other in zip(ours, theirs, strict=True)
        )

    @property
    def difference(self) -> float | None:
        """The largest difference between two losses of the step; None where there are none to compare."""
        pairs = list(zip(losses(self.reference), losses(self.migrated), strict=False))
        if not pairs:
            return None
        if self.losses_equal:
            return 0.0
        return max((abs(a - b) for a, b in pairs), key=lambda each: math.inf if math.isnan(each) else each)


@dataclass(frozen=True)
class Gap:
    """Rows that are not shown."""

    count: int


@dataclass(frozen=True)
class ProofSteps:
    """The steps of one process in both runs."""

    title: Text
    several_optimizers: bool
    optimizers: tuple[str, ...]
    rows: tuple[StepPair, ...]

    def shortened(self, ends: int) -> list[StepPair | Gap]:
        """So many rows from either end, and around the first one that differs."""
        count = len(self.rows)
        wanted = {*range(min(ends, count)), *range(max(0, count - ends), count)}
        first = next((at for at, row in enumerate(self.rows) if not is_equal(row)), None)
        if first is not None:
            wanted |= {at for at in range(first - 2, first + 3) if 0 <= at < count}
        shown: list[StepPair | Gap] = []
        last = -1
        for at in sorted(wanted):
            if at - last > 2:
                shown.append(Gap(at - last - 1))
            elif at - last == 2:
                shown.append(self.rows[last + 1])
            shown.append(self.rows[at])
            last = at
        return shown


def is_equal(row: StepPair) -> bool:
    """Whether nothing that reports show of the step differs."""
    return row.parameters_equal is True and row.losses_equal


def tables(proof: Proof, result: VendorResult) -> list[ProofSteps]:
    """One for each process, in the order of the ranks."""
    pairs = list(zip_longest(proof.reference.processes, result.run.processes if result.run else ()))
    return [
        _table(number, reference, migrated, len(pairs)) for number, (reference, migrated) in enumerate(pairs)
    ]


def all_runs(proof: Proof) -> list[ProgramRun]:
    """The reference, and those of the vendors that were started."""
    return [proof.reference, *(result.run for result in proof.results if result.run)]


def losses(step: StepSummary | None) -> Sequence[float]:
    """Those of a step; none if there is no step."""
    return step.losses if step else ()


def process_title(process: ProcessSummary | None, number: int) -> Text:
    """`rank 0`, else `process 1`."""
    rank = process.identity.rank if process else None
    return words.PROCESS.format(number=number + 1) if rank is None else words.RANK.format(rank=rank)


def _table(
    number: int, reference: ProcessSummary | None, migrated: ProcessSummary | None, count: int
) -> ProofSteps:
    some = reference or migrated
    steps = zip_longest(reference.steps if reference else (), migrated.steps if migrated else ())
    title = process_title(some, number) if count > 1 else Text("", "")
    optimizers = some.optimizers if some else ()
    rows = tuple(
        StepPair(next((step.ordinal for step in pair if step), at), *pair) for at, pair in enumerate(steps, 1)
    )
    return ProofSteps(title, len(optimizers) > 1, optimizers, rows)

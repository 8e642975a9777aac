"""The recordings that the processes of a run have left in a folder, in an order that is the same for every run."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchferry.prove.model import MAIN, ProcessIdentity, ProcessSummary, StepRecord, StepSummary
from torchferry.prove.operators_trace import SUFFIX as OPERATORS_SUFFIX
from torchferry.prove.records import SUFFIX, read_identity, read_steps

_CHECKSUM_DIGITS = 16


@dataclass(frozen=True)
class Recording:
    """What one process has left."""

    identity: ProcessIdentity
    key: tuple[int, int]  # rank (-1: none) and place among the processes of that rank
    path: Path

    def steps(self) -> Iterator[StepRecord]:
        """Read anew each time: all steps of a long run need not fit into memory."""
        return read_steps(self.path)

    @property
    def operators(self) -> Path:
        """The file of its operators, if those were recorded."""
        return self.path.with_name(f"{self.identity.pid}{OPERATORS_SUFFIX}")


def find_recordings(folder: Path) -> list[Recording]:
    """Those of the processes that took a step; of a rank that torchrun has started anew, the last."""
    found = [(identity, path) for path in folder.glob(f"*{SUFFIX}") if (identity := read_identity(path))]
    stepped = [(identity, path) for identity, path in found if any(True for _ in read_steps(path))]
    last = max((identity.restart for identity, _ in stepped), default=0)
    kept = [(identity, path) for identity, path in stepped if identity.restart == last]
    kept.sort(key=lambda each: _order(each[0]))
    recordings: list[Recording] = []
    for identity, path in kept:
        before = sum(1 for each in recordings if each.key[0] == _rank(identity))
        recordings.append(Recording(identity, (_rank(identity), before), path))
    return recordings


def _order(identity: ProcessIdentity) -> tuple[int, bool, str, int]:
    """The same in every run: of processes that are started at once, another may be the first each time."""
    return _rank(identity), identity.role != MAIN, identity.role, identity.started


def _rank(identity: ProcessIdentity) -> int:
    return -1 if identity.rank is None else identity.rank


def processes_that_called_backward(folder: Path) -> int:
    """How many processes there were that could have taken a step."""
    return sum(1 for path in folder.glob(f"*{SUFFIX}") if read_identity(path))


def summary(recording: Recording) -> ProcessSummary:
    """What reports show of a process."""
    types: dict[int, str] = {}
    steps = []
    for step in recording.steps():
        types[step.optimizer] = step.optimizer_type
        steps.append(_summary(step))
    return ProcessSummary(recording.identity, tuple(types[index] for index in sorted(types)), tuple(steps))


def _summary(step: StepRecord) -> StepSummary:
    norms = [gradient.facts.norm for gradient in step.gradients if gradient.facts]
    checksums = "".join(parameter.facts.checksum for parameter in step.parameters if parameter.facts)
    return StepSummary(
        ordinal=step.ordinal,
        optimizer=step.optimizer,
        losses=tuple(loss.value for loss in step.losses),
        gradient_norm=math.sqrt(sum(norm * norm for norm in norms)),
        checksum=hashlib.sha256(checksums.encode()).hexdigest()[:_CHECKSUM_DIGITS],
        skipped=step.skipped,
    )

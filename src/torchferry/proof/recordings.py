"""The recordings that the processes of a run have left in a folder, in an order that is the same for every run."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.proof.model import (
    MAIN,
    LossRecord,
    NamedFacts,
    ProcessIdentity,
    ProcessSummary,
    StepRecord,
    StepSummary,
    TensorFacts,
)
from torchferry.proof.operators import SUFFIX as OPERATORS_SUFFIX
from torchferry.settings import decode, encode

# The file that a process records into: one line of JSON for itself, one for each step.

SUFFIX = ".steps"


def identity_line(identity: ProcessIdentity) -> str:
    """The first line of a file."""
    return encode(identity) + "\n"


def step_line(step: StepRecord) -> str:
    """One line: a record as the list of its fields; numbers are written so that reading them gives the same bits."""

    def listed(record: Any) -> list[Any]:
        return [getattr(record, name) for name in record.__dataclass_fields__]

    return json.dumps(step, separators=(",", ":"), default=listed) + "\n"


def read_identity(path: Path) -> ProcessIdentity | None:
    """Whose file it is; None if the process was killed before it could say so."""
    for line in _whole_lines(path):
        return decode(ProcessIdentity, line)
    return None


def read_steps(path: Path) -> Iterator[StepRecord]:
    """The steps of a process, one after the other; a line that was cut off by the process's death is left out."""
    lines = _whole_lines(path)
    next(lines, None)
    for line in lines:
        yield _step(json.loads(line))


def _whole_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield line


def _step(content: list[Any]) -> StepRecord:
    ordinal, optimizer, kind, losses, skipped, *named, devices, step = content
    made = tuple(LossRecord(value, _facts(facts), place, scale) for value, facts, place, scale in losses)
    gradients, parameters, buffers = (
        tuple(NamedFacts(name, facts and _facts(facts)) for name, facts in group) for group in named
    )
    return StepRecord(
        ordinal, optimizer, kind, made, skipped, gradients, parameters, buffers, tuple(devices), step
    )


def _facts(written: list[Any]) -> TensorFacts:
    shape, dtype, checksum, norm, projections = written
    return TensorFacts(tuple(shape), dtype, checksum, norm, tuple(projections))


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
    kept = [
        (-1 if identity.rank is None else identity.rank, identity, path)
        for identity, path in stepped
        if identity.restart == last
    ]
    # the same in every run: of processes that are started at once, another may be the first each time
    kept.sort(key=lambda each: (each[0], each[1].role != MAIN, each[1].role, each[1].started))
    recordings: list[Recording] = []
    for rank, identity, path in kept:
        before = sum(1 for each in recordings if each.key[0] == rank)
        recordings.append(Recording(identity, (rank, before), path))
    return recordings


def processes_that_called_backward(folder: Path) -> int:
    """How many processes there were that could have taken a step."""
    return sum(1 for path in folder.glob(f"*{SUFFIX}") if read_identity(path))


def summary(recording: Recording) -> ProcessSummary:
    """What reports show of a process."""
    types: dict[int, str] = {}
    steps = []
    for step in recording.steps():
        types[step.optimizer] = step.optimizer_type
        norms = [gradient.facts.norm for gradient in step.gradients if gradient.facts]
        checksums = "".join(parameter.facts.checksum for parameter in step.parameters if parameter.facts)
        steps.append(
            StepSummary(
                ordinal=step.ordinal,
                optimizer=step.optimizer,
                losses=tuple(loss.value for loss in step.losses),
                gradient_norm=math.sqrt(sum(norm * norm for norm in norms)),
                checksum=hashlib.sha256(checksums.encode()).hexdigest()[:_CHECKSUM_DIGITS],
                skipped=step.skipped,
                step=step.step,
            )
        )
    return ProcessSummary(recording.identity, tuple(types[index] for index in sorted(types)), tuple(steps))


# What a run that failed has to say for itself: the last traceback of its error output.

_TRACEBACK = re.compile(r"^.*Traceback \(most recent call last\):", re.MULTILINE)
# torchrun reports the failure of its processes with a traceback of its own, which says nothing about theirs.
_OF_TORCHRUN = ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "distributed/run.py")
_LAST_BYTES = 1 << 20
_LAST_LINES = 20


def last_words(log: Path) -> str:
    """From the last traceback on; without any, the last lines."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LAST_BYTES))
        text = file.read().decode("utf-8", "replace")
    begins = [match.start() for match in _TRACEBACK.finditer(text)]
    tracebacks = [text[begin:end] for begin, end in itertools.pairwise([*begins, len(text)])]
    own = [each for each in tracebacks if not any(words in each for words in _OF_TORCHRUN)]
    if own:
        return own[-1].rstrip("\n")
    return "\n".join(text.rstrip("\n").split("\n")[-_LAST_LINES:])

"""The file that a process records into: one line of JSON for itself, one for each step. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchferry.prove.model import LossRecord, NamedFacts, ProcessIdentity, StepRecord, TensorFacts

SUFFIX = ".steps"


def identity_line(identity: ProcessIdentity) -> str:
    """The first line of a file."""
    return json.dumps(asdict(identity)) + "\n"


def step_line(step: StepRecord) -> str:
    """One line; numbers are written so that reading them gives the same bits."""
    content = {
        "ordinal": step.ordinal,
        "optimizer": step.optimizer,
        "optimizer_type": step.optimizer_type,
        "losses": [[loss.value, _written(loss.facts), loss.place, loss.scale] for loss in step.losses],
        "skipped": step.skipped,
        "gradients": [[each.name, _written(each.facts)] for each in step.gradients],
        "parameters": [[each.name, _written(each.facts)] for each in step.parameters],
        "buffers": [[each.name, _written(each.facts)] for each in step.buffers],
        "devices": step.devices,
    }
    return json.dumps(content, separators=(",", ":")) + "\n"


def _written(facts: TensorFacts | None) -> list[Any] | None:
    if facts is None:
        return None
    return [facts.shape, facts.dtype, facts.checksum, facts.norm, facts.projections]


def read_identity(path: Path) -> ProcessIdentity | None:
    """Whose file it is; None if the process was killed before it could say so."""
    for line in _whole_lines(path):
        return ProcessIdentity(**json.loads(line))
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


def _step(content: dict[str, Any]) -> StepRecord:
    losses = tuple(
        LossRecord(value, _facts(facts), place, scale) for value, facts, place, scale in content["losses"]
    )
    named = {
        group: tuple(NamedFacts(name, facts and _facts(facts)) for name, facts in content[group])
        for group in ("gradients", "parameters", "buffers")
    }
    devices = tuple(content["devices"])
    return StepRecord(**{**content, "losses": losses, **named, "devices": devices})


def _facts(written: list[Any]) -> TensorFacts:
    shape, dtype, checksum, norm, projections = written
    return TensorFacts(tuple(shape), dtype, checksum, norm, tuple(projections))

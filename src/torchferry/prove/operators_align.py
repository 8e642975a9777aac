"""Names the first operator of a step that differs between two runs, from what the recorder left of each."""

from __future__ import annotations

import math
from pathlib import Path

from torchferry.prove.model import Cause, OperatorDifference, TensorFacts
from torchferry.prove.operators_analysis import Analysis, Known, Suspect
from torchferry.prove.operators_trace import Call, Trace, read_trace

# Operators that do the same job, on one device under one name and on another under another.
_FAMILIES = {
    "dropout": ("native_dropout", "_fused_dropout", "bernoulli"),
    "attention": ("scaled_dot_product",),
    "batch norm": ("batch_norm",),
    "recurrent layer": ("rnn", "lstm", "gru"),
    "convolution": ("convolution", "conv"),
}


def first_difference(reference: Path, migrated: Path) -> OperatorDifference | None:
    """What the operators of the recorded step say; None if one of the runs has recorded none."""
    if not reference.exists() or not migrated.exists():
        return None
    return compare_traces(read_trace(reference), read_trace(migrated))


def compare_traces(reference: Trace, migrated: Trace) -> OperatorDifference | None:
    """The same, of traces that are in memory."""
    if not reference.calls or not migrated.calls:
        return None
    suspect = Analysis(migrated, Known(reference)).suspect()
    theirs = Analysis(reference, Known(migrated)).suspect()
    notes = tuple(dict.fromkeys((*reference.notes, *migrated.notes)))
    if suspect is None:
        cause = Cause.NONE if theirs is None else Cause.CALLS
        return _difference(cause, theirs.call if theirs else None, None, -1, notes)
    if suspect.foreign:
        return _foreign(suspect, theirs, reference, notes)
    if suspect.twin is not None:
        cause = Cause.RANDOM if suspect.call.random else Cause.RESULT
        return _difference(cause, suspect.twin, suspect.call, suspect.position, notes)
    other = _same_tensors(suspect.call, reference)
    if other is None:
        other = theirs.call if theirs is not None else _same_place(suspect.call, reference)
    cause = _cause(suspect.call, other)
    comparable = cause is not Cause.CALLS and other is not None and suspect.position < len(other.outputs)
    position = suspect.position if comparable else -1
    return _difference(cause, other, suspect.call, position, notes)


def _foreign(
    suspect: Suspect, theirs: Suspect | None, reference: Trace, notes: tuple[str, ...]
) -> OperatorDifference:
    """An input came from outside the step and is not the reference's."""
    value = suspect.call.inputs[suspect.position]
    if suspect.sender is not None:
        return _difference(Cause.COMMUNICATION, None, suspect.sender, -1, notes)
    cause = Cause.DATA if suspect.call.phase == "forward" and not value.role else Cause.STATE
    other = theirs.call if theirs is not None and theirs.foreign else _same_place(suspect.call, reference)
    return _difference(cause, other, suspect.call, suspect.position, notes)


def _cause(call: Call, other: Call | None) -> Cause:
    """What two calls are to each other that both lead to results that the other run does not have."""
    if other is None:
        return Cause.CALLS
    same_job = _family(call) == _family(other)
    if (call.random or other.random) and (same_job or call.module == other.module != ""):
        return Cause.RANDOM
    if not same_job:
        return Cause.CALLS
    same_tensors = [value.checksum for value in call.inputs] == [value.checksum for value in other.inputs]
    if same_tensors and call.name == other.name and call.arguments != other.arguments:
        return Cause.ARGUMENTS
    shared = {value.checksum for value in call.inputs} & {value.checksum for value in other.inputs} - {""}
    return Cause.RESULT if shared else Cause.CALLS


def _family(call: Call) -> str:
    backward = " backward" if "backward" in call.name else ""
    for family, parts in _FAMILIES.items():
        if any(part in call.name for part in parts):
            return family + backward
    return call.name


def _same_tensors(call: Call, trace: Trace) -> Call | None:
    """The call of the same operator on the same tensors, but with other arguments."""
    wanted = call.key[:2]
    return next((other for other in trace.calls if call.inputs and other.key[:2] == wanted), None)


def _same_place(call: Call, trace: Trace) -> Call | None:
    """The call of the other run that is most likely the same one: by name, phase and module, then by what it reads."""
    inputs = {value.checksum for value in call.inputs} - {""}

    def likeness(other: Call) -> tuple[int, int, int]:
        shared = len(inputs & {value.checksum for value in other.inputs})
        return (
            (other.name == call.name) + (other.module == call.module) + (other.phase == call.phase),
            shared,
            -abs(other.ordinal - call.ordinal),
        )

    best = max(trace.calls, key=likeness, default=None)
    return best if best is not None and (best.name == call.name or likeness(best)[1]) else None


def _difference(
    cause: Cause, reference: Call | None, migrated: Call | None, position: int, notes: tuple[str, ...]
) -> OperatorDifference:
    distance = relative = math.nan
    if reference is not None and migrated is not None and position >= 0:
        side = "inputs" if cause in (Cause.DATA, Cause.STATE) else "outputs"
        ours, theirs = getattr(reference, side), getattr(migrated, side)
        if position < len(ours):
            distance = _distance(ours[position].facts, theirs[position].facts)
            relative = distance / ours[position].facts.norm if ours[position].facts.norm else math.inf
    return OperatorDifference(
        reference.described() if reference else None,
        migrated.described() if migrated else None,
        position,
        distance,
        relative,
        cause,
        notes,
    )


def _distance(one: TensorFacts, other: TensorFacts) -> float:
    """Estimated from the projections on random signs; nan where the shapes differ."""
    if one.shape != other.shape or len(one.projections) != len(other.projections) or not one.projections:
        return math.nan
    squares = [(a - b) ** 2 for a, b in zip(one.projections, other.projections, strict=True)]
    return math.sqrt(sum(squares) / len(squares)) if all(map(math.isfinite, squares)) else math.inf

"""Names the first operator of a step that differs between two runs, from what the recorder left of each."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torchferry.prove.model import Cause, OperatorCall, OperatorDifference, TensorFacts

# Reads what the operator recorder wrote: the calls of one step, an operator over lists taken apart.

_OVER_LISTS = (
    "_foreach_",
    "_fused_",
    "_amp_foreach_",
)  # operators that do the same to each element of their lists
_NAMESPACES_OF_COMMUNICATION = ("c10d::", "_c10d_functional::", "c10d_functional::")
SUFFIX = ".operators"


@dataclass(frozen=True)
class Value:
    """A tensor as a call saw it, or a number that a call returned."""

    facts: TensorFacts
    role: str  # "parameter", "buffer" or ""
    memory: int  # tensors with the same number shared memory, at one time
    unread: str  # why there is no checksum; "" where there is one

    @property
    def checksum(self) -> str:
        """What tells values apart; "" for one that was not read."""
        return self.facts.checksum


@dataclass(frozen=True)
class Call:
    """One operator on single tensors."""

    ordinal: int
    operator: str  # "aten::_foreach_add_.List"
    name: str  # "add": without namespace, overload, mark of in-place and of lists
    phase: str
    module: str
    place: str
    node: str
    random: bool
    inputs: tuple[Value, ...]
    arguments: str
    outputs: tuple[Value, ...]  # what it returned, then what it wrote to and did not return
    written: frozenset[str]  # checksums of what it wrote to

    @property
    def key(self) -> tuple[Any, ...]:
        """Calls with the same key must have the same results."""
        tensors = tuple(value.checksum or (value.facts.dtype, value.facts.shape) for value in self.inputs)
        return self.name, tensors, self.arguments

    @property
    def communicates(self) -> bool:
        """Whether its result depends on other processes."""
        return self.operator.startswith(_NAMESPACES_OF_COMMUNICATION)

    def described(self) -> OperatorCall:
        """For a report."""
        return OperatorCall(
            ordinal=self.ordinal,
            name=self.operator,
            phase=self.phase,
            module=self.module,
            place=self.place,
            outputs=tuple(value.facts for value in self.outputs),
            inputs=tuple(value.facts for value in self.inputs),
            arguments=self.arguments,
            node=self.node,
        )


@dataclass(frozen=True)
class Trace:
    """The calls of one step of one process."""

    calls: tuple[Call, ...]
    notes: tuple[str, ...]
    whole: bool  # the process came to the end of the step


def read_trace(path: Path) -> Trace:
    """The calls; a line that was cut off by the process's death is left out."""
    calls: list[Call] = []
    notes: list[str] = []
    whole = False
    with path.open("rb") as file:
        for ordinal, line in enumerate(file):
            if not line.endswith(b"\n"):
                break
            content = json.loads(line)
            if "op" in content:
                calls += _calls(content, ordinal)
            elif "end" in content:
                whole = True
                notes = content["notes"]
    return Trace(tuple(calls), tuple(notes), whole)


def _calls(content: dict[str, Any], ordinal: int) -> Iterator[Call]:
    whole = _call(content, ordinal)
    base = whole.operator.split("::")[-1]
    count = 1 + max((index for position, index, *_ in content["in"] if position == 0), default=-1)
    if not base.startswith(_OVER_LISTS) or count < 1:
        yield whole
        return
    for index in range(count):
        part = {
            **content,
            "in": [each for each in content["in"] if each[1] in (-1, index)],
            "out": [each for each in content["out"] if index in (each[0], each[1])],
            "wrote": [each for each in content["wrote"] if each[1] in (-1, index)],
            "args": [_element(argument, index, count) for argument in content["args"]],
        }
        yield replace(_call(part, ordinal), name=_plain_name(base))


def _element(argument: Any, index: int, count: int) -> Any:
    """The number for one tensor, where there is one for each."""
    return argument[index] if isinstance(argument, list) and len(argument) == count else argument


def _call(content: dict[str, Any], ordinal: int) -> Call:
    written = [_value(each[2:]) for each in content["wrote"]]
    returned = [_value(each[2:]) if len(each) > 3 else _number(each[2]) for each in content["out"]]
    known = {value.checksum for value in returned}
    return Call(
        ordinal=ordinal,
        operator=content["op"],
        name=_plain_name(content["op"].split("::")[-1]),
        phase=content["phase"],
        module=content["module"],
        place=content["place"],
        node=content.get("node", ""),
        random=bool(content.get("random")),
        inputs=tuple(_value(each[2:]) for each in content["in"]),
        arguments=", ".join(map(str, content["args"])),
        outputs=tuple(returned + [value for value in written if value.checksum not in known]),
        written=frozenset(value.checksum for value in written if value.checksum),
    )


def _value(fact: list[Any]) -> Value:
    checksum, dtype, shape, norm, projections, _on_device, role, memory, unread = fact
    return Value(TensorFacts(tuple(shape), dtype, checksum, norm, tuple(projections)), role, memory, unread)


def _number(value: Any) -> Value:
    """A number that left the world of tensors: the program may branch on it."""
    size = float(value) if isinstance(value, (bool, int, float)) else 0.0
    facts = TensorFacts((), "number", f"={value!r}", abs(size), (size,))
    return Value(facts, "", 0, "")


def _plain_name(base: str) -> str:
    name = base.split(".")[0]
    for prefix in _OVER_LISTS:
        name = name.removeprefix(prefix)
    return name.rstrip("_")


# One run's calls held against the other's: which results the other run does not have, and which of
# them matter.
#
# Two sequences that compute the same differ: copies between host and device exist on one side, a
# composite operator is taken apart on the other. So values are compared, not positions. A result is
# *odd* if the other run computed something else from the same inputs or, where it made no such call,
# has no such value at all. An odd value is *vouched for* if something the other run also has was
# computed from it, element for element: then it is an intermediate result that only one side has. An
# odd value *matters* if it reached something that stays: a tensor that was written to, another
# process.

_FLOATING = ("float", "bfloat", "complex")


class Known:
    """What a run has: its values, and what it computes from which."""

    def __init__(self, trace: Trace) -> None:
        self.values: set[str] = set()
        self.by_key: dict[tuple[object, ...], list[Call]] = defaultdict(list)
        self._makers: dict[str, set[str]] = defaultdict(set)
        for call in trace.calls:
            for value in call.outputs:
                self._makers[value.checksum].add(call.name)
            self.values.update(value.checksum for value in (*call.inputs, *call.outputs))
            self.by_key[call.key].append(call)
        self.values.discard("")

    def has(self, value: Value) -> bool:
        """Whether the value occurs; one that was not read can't be said to be missing."""
        return not value.checksum or value.checksum in self.values

    def made_by(self, value: Value, operator: str) -> bool:
        """Whether an operator of this name has given this result."""
        return operator in self._makers.get(value.checksum, ())

    def same_call(self, call: Call) -> Call | None:
        """The call with the same inputs whose results are most like this one's."""
        return max(
            self.by_key.get(call.key, ()), key=lambda other: -len(odd_positions(call, other)), default=None
        )


def odd_positions(call: Call, other: Call) -> list[int]:
    """Where two calls' results differ, as far as they were read."""
    return [
        position
        for position, (own, others) in enumerate(zip(call.outputs, other.outputs, strict=False))
        if own.checksum != others.checksum and own.checksum and others.checksum
    ]


@dataclass(frozen=True)
class Suspect:
    """The first call with an odd result that matters."""

    call: Call
    position: int  # of the odd output; of the odd input, if `foreign`
    foreign: bool  # an input came from outside the recorded step, and the other run does not have it
    twin: Call | None  # the other run's call with the same inputs
    sender: Call | None = None  # the communication that brought the foreign input


class Analysis:
    """One run's calls in the light of what the other run has."""

    def __init__(self, trace: Trace, other: Known) -> None:
        self._calls = trace.calls
        self._other = other
        self._twins = [other.same_call(call) for call in trace.calls]
        self._accepted: set[str] = set()
        self._odd = [self._odd_outputs(*pair) for pair in zip(self._calls, self._twins, strict=True)]

    def suspect(self) -> Suspect | None:
        """The first call that explains the difference; None if the runs do not differ."""
        return self._first_suspect(strict=True) or self._first_suspect(strict=False)

    def _odd_outputs(self, call: Call, twin: Call | None) -> list[int]:
        if twin is not None:
            return odd_positions(call, twin)
        missing = [position for position, value in enumerate(call.outputs) if not self._other.has(value)]
        if (
            missing and _first_read(call) not in missing
        ):  # the result is right: so is what comes along with it
            self._accepted.update(call.outputs[position].checksum for position in missing)
            return []
        return missing

    @cached_property
    def _matters(self) -> list[list[int]]:
        """Of each call, the odd outputs that reach something that stays; found from the last call to the first."""
        spoiling: set[str] = set()  # inputs of calls whose odd results matter
        consumed: set[str] = set()
        vouched = self._accepted
        result: list[list[int]] = [[] for _ in self._calls]
        for index in range(len(self._calls) - 1, -1, -1):
            call, twin = self._calls[index], self._twins[index]
            for position in self._odd[index]:
                checksum = call.outputs[position].checksum
                stays = checksum in call.written and checksum not in consumed
                certain = twin is not None and position == _first_read(call) and checksum in consumed
                if certain or (checksum not in vouched and (checksum in spoiling or stays)):
                    result[index].append(position)
            inputs = {value.checksum for value in call.inputs} - {""}
            consumed |= inputs
            if result[index] or call.communicates:
                spoiling |= {checksum for checksum in inputs if checksum not in self._other.values}
            elif twin is None and not self._odd[index]:
                vouched |= self._vouched_by(call)
        return result

    def _vouched_by(self, call: Call) -> set[str]:
        """The odd inputs of a call whose result is right, and holds as much as the input."""
        first = _first_read(call)
        if first is None or not call.outputs[first].facts.dtype.startswith(_FLOATING):
            return set()
        result = call.outputs[first]
        if result.facts.norm == 0 or self._other.made_by(result, call.name):
            return set()  # the same from other inputs: it does not depend on them
        return {
            value.checksum
            for value in call.inputs
            if not self._other.has(value) and 1 < _size(value) <= _size(result)
        }

    def _first_suspect(self, strict: bool) -> Suspect | None:
        made: set[str] = set()
        touched: dict[int, Call | None] = {}  # memory -> the communication that may have changed it last
        for index, call in enumerate(self._calls):
            if self._matters[index]:
                strangers = [
                    position
                    for position, value in enumerate(call.inputs)
                    if not self._other.has(value) and value.checksum not in self._accepted
                ]
                if not strangers:
                    return Suspect(call, self._matters[index][0], False, self._twins[index])
                for position in strangers:
                    value = call.inputs[position]
                    sender = touched.get(value.memory)
                    if value.checksum not in made and (sender or not strict or value.memory not in touched):
                        return Suspect(call, position, True, None, sender)
            made.update(value.checksum for value in call.outputs)
            if call.communicates:
                touched.update({value.memory: call for value in call.inputs})
            else:
                touched.update({value.memory: None for value in call.outputs})
        return None


def _first_read(call: Call) -> int | None:
    """The position of a call's main result."""
    return next((position for position, value in enumerate(call.outputs) if value.checksum), None)


def _size(value: Value) -> int:
    size = 1
    for length in value.facts.shape:
        size *= length
    return size


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

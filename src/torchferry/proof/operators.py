"""Names the first operator of a step that differs between two runs, from the record that each has left of it."""

from __future__ import annotations

import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from torchferry.accuracy.compare.matching import CallSequence, match_sites
from torchferry.accuracy.file.reader import MappedRecord, open_record
from torchferry.accuracy.model import Call, TensorRecord, TensorRef, Value
from torchferry.errors import InputError
from torchferry.operators.names import family, is_random, of_one_element, works_on_lists
from torchferry.proof.model import Cause, OperatorCall, OperatorDifference, TensorFacts
from torchferry.readiness.model import Special

# The calls of a step as a record of statistics has them (`accuracy/record/sketches.py`), with an operator over lists
# taken apart.

_NAMESPACES_OF_COMMUNICATION = ("c10d::", "_c10d_functional::", "c10d_functional::")
# They say where or how a result is stored, not what it is.
_PLACING = frozenset({"device", "layout", "pin_memory", "non_blocking", "memory_format", "generator"})
_DROPOUT = frozenset({"dropout", "dropout_p"})
_OF_TORCH = frozenset({"dtype", "layout", "memory_format"})  # values that PyTorch writes with its own name
_RESULT = re.compile(r"output_\d+")
_CHECKSUM_DIGITS = 16
SUFFIX = ".operators"


@dataclass(frozen=True)
class TracedValue:
    """A tensor as a call saw it, or a number that a call returned."""

    facts: TensorFacts
    role: str = ""  # "parameter", "buffer" or ""
    memory: int = 0  # tensors with the same number shared memory, at one time

    @property
    def checksum(self) -> str:
        """What tells values apart; "" for one that was not read."""
        return self.facts.checksum


@dataclass(frozen=True)
class TracedCall:
    """One operator on single tensors."""

    ordinal: int
    operator: str  # "aten::_foreach_add_.List"
    name: str  # "add": without namespace, overload, mark of in-place and of lists
    phase: str
    module: str
    place: str
    node: str
    random: bool
    inputs: tuple[TracedValue, ...]
    arguments: str
    outputs: tuple[TracedValue, ...]  # what it returned, then what it wrote to and did not return
    written: frozenset[str]  # checksums of what it wrote to
    memories: frozenset[int]  # of all its tensors

    @property
    def key(self) -> tuple[object, ...]:
        """Calls with the same key must have the same results."""
        tensors = tuple(value.checksum or (value.facts.dtype, value.facts.shape) for value in self.inputs)
        return self.name, tensors, self.arguments

    @property
    def communicates(self) -> bool:
        """Whether its result depends on other processes."""
        return self.operator.startswith(_NAMESPACES_OF_COMMUNICATION)

    def described(self) -> OperatorCall:
        """The call as a report has it."""
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
class StepTrace:
    """The calls of one step of one process."""

    calls: tuple[TracedCall, ...]
    sequence: CallSequence  # of the same calls, before lists were taken apart
    notes: tuple[str, ...]
    whole: bool  # the process came to the end of the step


def read_trace(path: Path) -> StepTrace:
    """The calls; of a process that was ended, those up to then."""
    try:
        with open_record(path) as record:
            assert isinstance(record, MappedRecord)
            reading = _Reading(record)
            calls = tuple(traced for call in record.calls for traced in reading.calls(call))
            sequence, header = CallSequence(record.calls), record.header
    except InputError:  # it was ended before it could begin
        return StepTrace((), CallSequence(()), (), False)
    return StepTrace(calls, sequence, header.notes if header.complete else (), header.complete)


class _Reading:
    """Makes traced calls of recorded ones; the facts of a tensor that comes again are there already."""

    def __init__(self, record: MappedRecord) -> None:
        self._record = record
        self._values: dict[tuple[object, ...], TracedValue] = {}

    def calls(self, call: Call) -> Iterator[TracedCall]:
        """One for each tensor of the lists that an operator works on, else one."""
        arguments = [_plain(value) for name, value in call.arguments if _says_something(name, value)]
        count = 0
        if works_on_lists(call.operator):
            first = call.arguments[0][0] if call.arguments else ""
            count = 1 + max(
                (_index(each) for each in call.inputs if each.name.split("/")[1] == first), default=-1
            )
        if not count:
            yield self._traced(call, call.inputs, self._outputs(call), arguments)
        for index in range(count):
            yield self._traced(
                call,
                [each for each in call.inputs if _index(each) in (-1, index)],
                [(each, self._value(each)) for each in call.outputs if _index(each) in (-1, index)],
                # the number for one tensor, where there is one for each
                [
                    each[index] if isinstance(each, list) and len(each) == count else each
                    for each in arguments
                ],
            )

    def _traced(
        self,
        call: Call,
        given: Sequence[TensorRecord],
        outputs: Sequence[tuple[TensorRecord | None, TracedValue]],
        arguments: Sequence[object],
    ) -> TracedCall:
        inputs = tuple(map(self._value, given))
        values = [value for _, value in outputs]
        traced = TracedCall(
            ordinal=call.number,
            operator=call.operator,
            name=of_one_element(call.operator),
            phase=call.phase,
            module=call.module,
            place=call.place,
            node=call.node,
            random=is_random(call.operator)
            or any(value for name, value in call.arguments if name in _DROPOUT),
            inputs=inputs,
            arguments=", ".join(map(str, arguments)),
            outputs=tuple(values),
            written=frozenset(
                value.checksum
                for each, value in outputs  # those that do not go by the names of results are arguments
                if each and not _RESULT.fullmatch(each.name.split("/")[1]) and value.checksum
            ),
            memories=frozenset(value.memory for value in (*inputs, *values)),
        )
        # what came of it may be under way still
        return replace(traced, outputs=(), written=frozenset()) if traced.communicates else traced

    def _outputs(self, call: Call) -> list[tuple[TensorRecord | None, TracedValue]]:
        """What it answered, numbers as well, then what it wrote to and did not answer with."""
        found: list[tuple[TensorRecord | None, TracedValue]] = []
        answered = set()
        for result in _flat(call.results):
            if isinstance(result, TensorRef):
                answered.add(result.index)
                found.append((call.outputs[result.index], self._value(call.outputs[result.index])))
            elif result is not None:
                number = _plain(result)  # it has left the world of tensors: the program may branch on it
                size = float(number) if isinstance(number, (bool, int, float)) else 0.0
                facts = TensorFacts((), "number", f"={number!r}", abs(size), (size,))
                found.append((None, TracedValue(facts)))
        rest = [each for index, each in enumerate(call.outputs) if index not in answered]
        return found + [(each, self._value(each)) for each in rest]

    def _value(self, tensor: TensorRecord) -> TracedValue:
        key = (tensor.content, tensor.dtype, tensor.shape, tensor.role)
        if key not in self._values:
            self._values[key] = self._read(tensor)
        return self._values[key]

    def _read(self, tensor: TensorRecord) -> TracedValue:
        statistics, sketch = tensor.statistics, self._record.sketch(tensor)
        if statistics is None or sketch is None:
            return TracedValue(TensorFacts(tensor.shape, tensor.dtype, "", 0.0, ()), tensor.role)
        # equal bytes in another shape or dtype are another tensor
        bits = f"{tensor.shape}{tensor.dtype}{statistics.checksum}".encode()
        checksum = hashlib.sha256(bits).hexdigest()[:_CHECKSUM_DIGITS]
        norm = math.nan if statistics.nans else math.inf if statistics.infinities else statistics.norm
        memory, projections = sketch
        return TracedValue(
            TensorFacts(tensor.shape, tensor.dtype, checksum, norm, projections), tensor.role, memory
        )


def _says_something(name: str, value: Value) -> bool:
    has_tensors = any(isinstance(each, TensorRef) for each in _flat(value))
    return name not in _PLACING and value is not None and not has_tensors


def _flat(value: Value) -> Iterator[Value]:
    if isinstance(value, tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _plain(value: Value) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Special):
        return f"torch.{value.text}" if value.kind in _OF_TORCH else value.text or f"<{value.kind}>"
    return value


def _index(tensor: TensorRecord) -> int:
    """3 for input/self/self_3 and output/output_3; -1 for a tensor in no list."""
    _, argument, *item = tensor.name.split("/")
    if item or _RESULT.fullmatch(argument):
        return int((item or [argument])[0].rpartition("_")[2])
    return -1


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


class RunValues:
    """What a run has: its values, and what it computes from which."""

    def __init__(self, trace: StepTrace) -> None:
        self.values: set[str] = set()
        self.by_key: dict[tuple[object, ...], list[TracedCall]] = defaultdict(list)
        self._makers: dict[str, set[str]] = defaultdict(set)
        for call in trace.calls:
            for value in call.outputs:
                self._makers[value.checksum].add(call.name)
            self.values.update(value.checksum for value in (*call.inputs, *call.outputs))
            self.by_key[call.key].append(call)
        self.values.discard("")

    def has(self, value: TracedValue) -> bool:
        """Whether the value occurs; one that was not read can't be said to be missing."""
        return not value.checksum or value.checksum in self.values

    def made_by(self, value: TracedValue, operator: str) -> bool:
        """Whether an operator of this name has given this result."""
        return operator in self._makers.get(value.checksum, ())

    def same_call(self, call: TracedCall) -> TracedCall | None:
        """The call with the same inputs whose results are most like this one's."""
        return max(
            self.by_key.get(call.key, ()), key=lambda other: -len(odd_positions(call, other)), default=None
        )


def odd_positions(call: TracedCall, other: TracedCall) -> list[int]:
    """Where two calls' results differ, as far as they were read."""
    return [
        position
        for position, (own, others) in enumerate(zip(call.outputs, other.outputs, strict=False))
        if own.checksum != others.checksum and own.checksum and others.checksum
    ]


@dataclass(frozen=True)
class Suspect:
    """The first call with an odd result that matters."""

    call: TracedCall
    position: int  # of the odd output; of the odd input, if `foreign`
    foreign: bool  # an input came from outside the recorded step, and the other run does not have it
    twin: TracedCall | None  # the other run's call with the same inputs
    sender: TracedCall | None = None  # the communication that brought the foreign input


class SuspectSearch:
    """One run's calls in the light of what the other run has."""

    def __init__(self, trace: StepTrace, other: RunValues) -> None:
        self._calls = trace.calls
        self._other = other
        self._twins = [other.same_call(call) for call in trace.calls]
        self._accepted: set[str] = set()
        self._odd = [self._odd_outputs(*pair) for pair in zip(self._calls, self._twins, strict=True)]

    def suspect(self) -> Suspect | None:
        """The first call that explains the difference; None if the runs do not differ."""
        return self._first_suspect(strict=True) or self._first_suspect(strict=False)

    def _odd_outputs(self, call: TracedCall, twin: TracedCall | None) -> list[int]:
        if twin is not None:
            return odd_positions(call, twin)
        missing = [position for position, value in enumerate(call.outputs) if not self._other.has(value)]
        # the result is right: so is what comes along with it
        if missing and _first_read(call) not in missing:
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

    def _vouched_by(self, call: TracedCall) -> set[str]:
        """The odd inputs of a call whose result is right, and holds as much as the input."""
        first = _first_read(call)
        if first is None or not call.outputs[first].facts.dtype.startswith(_FLOATING):
            return set()
        result = call.outputs[first]
        if result.facts.norm == 0 or self._other.made_by(result, call.name):
            return set()  # the same from other inputs: it does not depend on them
        size = math.prod(result.facts.shape)
        return {
            value.checksum
            for value in call.inputs
            if not self._other.has(value) and 1 < math.prod(value.facts.shape) <= size
        }

    def _first_suspect(self, strict: bool) -> Suspect | None:
        made: set[str] = set()
        # memory -> the communication that may have changed it last
        touched: dict[int, TracedCall | None] = {}
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
                touched.update(dict.fromkeys(call.memories, call))
            else:
                touched.update({value.memory: None for value in call.outputs})
        return None


def _first_read(call: TracedCall) -> int | None:
    """The position of a call's main result."""
    return next((position for position, value in enumerate(call.outputs) if value.checksum), None)


def first_difference(reference: Path, migrated: Path) -> OperatorDifference | None:
    """What the operators of the recorded step say; None if one of the runs has recorded none."""
    if not reference.exists() or not migrated.exists():
        return None
    return _compare_traces(read_trace(reference), read_trace(migrated))


def _compare_traces(reference: StepTrace, migrated: StepTrace) -> OperatorDifference | None:
    if not reference.calls or not migrated.calls:
        return None
    suspect = SuspectSearch(migrated, RunValues(reference)).suspect()
    theirs = SuspectSearch(reference, RunValues(migrated)).suspect()
    notes = tuple(dict.fromkeys((*reference.notes, *migrated.notes)))
    if suspect is None:
        cause = Cause.NONE if theirs is None else Cause.CALLS
        return _difference(cause, theirs.call if theirs else None, None, -1, notes)
    if suspect.foreign:
        return _foreign(suspect, theirs, migrated, reference, notes)
    if suspect.twin is not None:
        cause = Cause.RANDOM if suspect.call.random else Cause.RESULT
        return _difference(cause, suspect.twin, suspect.call, suspect.position, notes)
    wanted = suspect.call.key[:2]  # the same operator on the same tensors, but with other arguments
    other = next((each for each in reference.calls if suspect.call.inputs and each.key[:2] == wanted), None)
    if other is None:
        other = theirs.call if theirs is not None else _counterpart(suspect.call, migrated, reference)
    cause = _cause(suspect.call, other)
    comparable = cause is not Cause.CALLS and other is not None and suspect.position < len(other.outputs)
    position = suspect.position if comparable else -1
    return _difference(cause, other, suspect.call, position, notes)


def _foreign(
    suspect: Suspect,
    theirs: Suspect | None,
    migrated: StepTrace,
    reference: StepTrace,
    notes: tuple[str, ...],
) -> OperatorDifference:
    """An input came from outside the step and is not the reference's."""
    value = suspect.call.inputs[suspect.position]
    if suspect.sender is not None:
        return _difference(Cause.COMMUNICATION, None, suspect.sender, -1, notes)
    cause = Cause.DATA if suspect.call.phase == "forward" and not value.role else Cause.STATE
    other = (
        theirs.call
        if theirs is not None and theirs.foreign
        else _counterpart(suspect.call, migrated, reference)
    )
    return _difference(cause, other, suspect.call, suspect.position, notes)


def _cause(call: TracedCall, other: TracedCall | None) -> Cause:
    """What two calls are to each other that both lead to results that the other run does not have."""
    if other is None:
        return Cause.CALLS
    same_job = family(call.operator) == family(other.operator)
    if (call.random or other.random) and (same_job or call.module == other.module != ""):
        return Cause.RANDOM
    if not same_job:
        return Cause.CALLS
    same_tensors = [value.checksum for value in call.inputs] == [value.checksum for value in other.inputs]
    if same_tensors and call.name == other.name and call.arguments != other.arguments:
        return Cause.ARGUMENTS
    shared = {value.checksum for value in call.inputs} & {value.checksum for value in other.inputs} - {""}
    return Cause.RESULT if shared else Cause.CALLS


def _counterpart(call: TracedCall, own: StepTrace, other: StepTrace) -> TracedCall | None:
    """The call of the other run that does the same job, by the order in which both make their calls."""
    matches = match_sites(own.sequence, other.sequence)
    found = next((match.golden for match in matches if match.mine == call.ordinal - 1), None)
    numbered = [each for each in other.calls if found is not None and each.ordinal == found + 1]
    return next((each for each in numbered if each.name == call.name), numbered[0] if numbered else None)


def _difference(
    cause: Cause,
    reference: TracedCall | None,
    migrated: TracedCall | None,
    position: int,
    notes: tuple[str, ...],
) -> OperatorDifference:
    distance = relative = math.nan
    if reference is not None and migrated is not None and position >= 0:
        side = "inputs" if cause in (Cause.DATA, Cause.STATE) else "outputs"
        one, other = getattr(reference, side), getattr(migrated, side)
        if position < len(one):
            one, other = one[position].facts, other[position].facts
            if one.shape == other.shape and len(one.projections) == len(other.projections) > 0:
                distance = one.projected_distance(other)
            relative = distance / one.norm if one.norm else math.inf
    theirs, ours = (each.described() if each else None for each in (reference, migrated))
    return OperatorDifference(theirs, ours, position, distance, relative, cause, notes)

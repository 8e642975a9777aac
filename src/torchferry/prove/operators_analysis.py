"""One run's calls held against the other's: which results the other run does not have, and which of them matter.

Two sequences that compute the same differ: copies between host and device exist on one side, a composite operator is
taken apart on the other. So values are compared, not positions. A result is *odd* if the other run computed something
else from the same inputs or, where it made no such call, has no such value at all. An odd value is *vouched for* if
something the other run also has was computed from it, element for element: then it is an intermediate result that only
one side has. An odd value *matters* if it reached something that stays: a tensor that was written to, another process.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from torchferry.prove.operators_trace import Call, Trace, Value

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

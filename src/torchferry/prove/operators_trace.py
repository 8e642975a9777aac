"""Reads what the operator recorder wrote: the calls of one step, an operator over lists taken apart. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchferry.prove.model import OperatorCall, TensorFacts

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

"""A way to divide a call: along which dimensions, and where its tensors have them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from torchferry.accuracy.model import Call, TensorRecord, Value


@dataclass(frozen=True)
class Axis:
    """A dimension that is divided: where the tensors of a call have it."""

    size: int
    inputs: Mapping[int, int]  # number of an input -> its dimension
    outputs: Mapping[int, int]
    arguments: tuple[tuple[str, int | None], ...] = ()  # that hold the size: a number, or an item of a list


@dataclass(frozen=True)
class Division:
    """One way to compute some of the outputs of a call in parts."""

    outputs: frozenset[int]
    axes: tuple[Axis, ...]
    arguments: Mapping[str, Value] = field(default_factory=dict)  # instead of the call's
    rows: tuple[int, int] | None = (
        None  # a table among the inputs, and the input that says which rows of it are read
    )


class Named:
    """The tensors of a call by the names of their arguments."""

    def __init__(self, call: Call) -> None:
        self.call, self.inputs, self.outputs = call, call.inputs, call.outputs
        self.given: dict[str, Value] = dict(call.arguments)
        self._numbers = {record.name.partition("/")[2]: at for at, record in enumerate(call.inputs)}
        self._written = {record.name.partition("/")[2]: at for at, record in enumerate(call.outputs)}

    def shape(self, *names: str) -> tuple[int, ...] | None:
        """Of the first of these inputs that there is."""
        return next((self.inputs[self._numbers[name]].shape for name in names if name in self._numbers), None)

    def axis(
        self,
        size: int,
        inputs: Mapping[str, int],
        outputs: Mapping[int, int],
        arguments: Iterable[tuple[str, int | None]] = (),
    ) -> Axis:
        """Of named inputs, as far as there are any of that size there; an argument that is written to is an output."""
        places = {
            self._numbers[name]: dimension % max(1, len(self.inputs[self._numbers[name]].shape))
            for name, dimension in inputs.items()
            if name in self._numbers and has(self.inputs[self._numbers[name]], dimension, size)
        }
        results = {
            at: dimension for at, dimension in outputs.items() if has(self.outputs[at], dimension, size)
        }
        for name, dimension in inputs.items():
            if name in self._written:
                results[self._written[name]] = dimension
        return Axis(size, places, results, tuple(arguments))

    def numbers(self, one: str, other: str) -> tuple[int, int]:
        """Of two inputs."""
        return self._numbers[one], self._numbers[other]

    def all_outputs(self) -> frozenset[int]:
        return frozenset(range(len(self.outputs)))

    def result(self, number: int) -> int | None:
        """The place among the outputs of what the call answered at this place."""
        return self._written.get(f"output_{number}")


def has(record: TensorRecord, dimension: int, size: int) -> bool:
    shape = record.shape
    return -len(shape) <= dimension < len(shape) and shape[dimension] == size


Rule = Callable[[Named], list[Division]]

"""Finds the smallest arguments with which an operator still fails in the same way. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torchferry.readiness.cases import notation
from torchferry.readiness.cases.contents import laid, overlaps, smallest_size
from torchferry.readiness.cases.model import (
    Case,
    CaseOutcome,
    CaseValue,
    CaseVerdict,
    Draw,
    TensorContents,
    TensorInput,
    contiguous,
)
from torchferry.readiness.cases.notation import described_call, same_order

# Finds and replaces the values of a case, those in lists included; tensors of another shape keep what
# they held.

Place = tuple[str | int, ...]  # ("args", 0), ("kwargs", "dim"), ("args", 1, 2) is an item of a list


def places(case: Case) -> list[tuple[Place, CaseValue]]:
    """Every value with its place; a list comes before its items."""
    found: list[tuple[Place, CaseValue]] = []

    def visit(place: Place, value: CaseValue) -> None:
        found.append((place, value))
        if isinstance(value, tuple):
            for index, item in enumerate(value):
                visit((*place, index), item)

    for index, value in enumerate(case.args):
        visit(("args", index), value)
    for kind, pairs in (("kwargs", case.kwargs), ("init", case.init)):
        for name, value in pairs:
            visit((kind, name), value)
    return found


def _tensors(case: Case) -> list[tuple[Place, TensorInput]]:
    return [(place, value) for place, value in places(case) if isinstance(value, TensorInput)]


def put(case: Case, place: Place, value: CaseValue) -> Case:
    """The case with another value there."""
    return put_all(case, {place: value})


def put_all(case: Case, values: Mapping[Place, CaseValue]) -> Case:
    """The case with other values at these places."""

    def changed(place: Place, value: CaseValue) -> CaseValue:
        if place in values:
            return values[place]
        if isinstance(value, tuple):
            return tuple(changed((*place, index), item) for index, item in enumerate(value))
        return value

    return replace(
        case,
        args=tuple(changed(("args", index), value) for index, value in enumerate(case.args)),
        kwargs=tuple((name, changed(("kwargs", name), value)) for name, value in case.kwargs),
        init=tuple((name, changed(("init", name), value)) for name, value in case.init),
    )


def with_shapes(
    case: Case, shapes: Mapping[Place, tuple[int, ...]], dropped: int | None = None, plain: bool = False
) -> Case:
    """The case with other shapes: dimensions cut short, or with `dropped` the first of a dimension's slices alone.

    Recorded contents are cut alike. Indices stay within the smallest size, if they were so before.
    """
    values: dict[Place, CaseValue] = {}
    stored = dict(case.stored)
    for place, value in _tensors(case):
        if place in shapes:
            values[place] = _reshaped(value, shapes[place], dropped, plain, stored)
    smaller = replace(put_all(case, values), stored=stored)
    before, after = smallest_size(case), smallest_size(smaller)
    if not 0 < after < before:
        return smaller
    indices = {
        place: replace(value, contents=TensorContents(Draw.INTS, 0, after))
        for place, value in _tensors(smaller)
        if value.contents.draw is Draw.INTS
        and value.contents.low == 0
        and after < value.contents.high <= before
    }
    return put_all(smaller, indices)


def _reshaped(
    tensor: TensorInput, shape: tuple[int, ...], dropped: int | None, plain: bool, stored: dict[str, Any]
) -> TensorInput:
    stride = None if plain else _stride(tensor, shape, dropped)
    if tensor.contents.draw is not Draw.STORED:
        return replace(tensor, shape=shape, stride=stride, offset=0 if plain else tensor.offset)
    key = f"{tensor.contents.key.partition('@')[0]}@{'x'.join(map(str, shape))}"
    smaller = replace(tensor, shape=shape, stride=stride, offset=0)
    smaller = replace(smaller, stride=None) if overlaps(smaller) else smaller
    whole = stored[tensor.contents.key].as_strided(tensor.shape, tensor.strides, tensor.offset)
    part = whole.select(dropped, 0) if dropped is not None else whole[tuple(slice(0, size) for size in shape)]
    stored[key] = laid(part, smaller)
    return replace(smaller, contents=replace(tensor.contents, key=key))


def _stride(tensor: TensorInput, shape: tuple[int, ...], dropped: int | None) -> tuple[int, ...] | None:
    if tensor.stride is None:
        return None
    old = tensor.stride if dropped is None else tensor.stride[:dropped] + tensor.stride[dropped + 1 :]
    gap = min(
        (step for step, size in zip(tensor.stride, tensor.shape, strict=True) if step and size > 1), default=1
    )
    stride = tuple(step * gap for step in same_order(old, shape))
    return None if stride == contiguous(shape) else stride


# The ways in which a case can be made simpler, each a list of simpler cases, the simplest first.

Pass = Callable[[Case], Iterator[Case]]
_T = TypeVar("_T")

_MOST_SCANNED = 64  # sizes below which every smaller one is tried
_SIMPLEST_FIRST = (
    TensorContents(Draw.FULL, 0),
    TensorContents(Draw.FULL, 1),
    TensorContents(Draw.ARANGE),
    TensorContents(Draw.INTS, 0, 2),
    TensorContents(Draw.INTS, -10, 10),
    TensorContents(Draw.NORMAL),
)


def _fewer_arguments(case: Case) -> Iterator[Case]:
    for index in range(len(case.kwargs)):
        yield replace(case, kwargs=case.kwargs[:index] + case.kwargs[index + 1 :])
    for index in range(len(case.init)):
        if not case.init[index][0].isdigit():
            yield replace(case, init=case.init[:index] + case.init[index + 1 :])
    if case.args:
        yield replace(case, args=case.args[:-1])


def _together_then_alone(group: list[_T]) -> list[list[_T]]:
    return [group, *([[each] for each in group] if len(group) > 1 else [])]


def _shorter_lists(case: Case) -> Iterator[Case]:
    """Lists of the same length lose the same item, as those of the foreach operators; then each by itself."""
    lists = [(place, value) for place, value in places(case) if isinstance(value, tuple)]
    for length in sorted({len(value) for _, value in lists}, reverse=True):
        same = [(place, value) for place, value in lists if len(value) == length]
        for group in _together_then_alone(same):
            if length > 2:
                yield put_all(case, {place: value[: length // 2] for place, value in group})
                yield put_all(case, {place: value[length // 2 :] for place, value in group})
            for drop in range(length if length > 1 else 0):
                yield put_all(case, {place: value[:drop] + value[drop + 1 :] for place, value in group})


def _smaller_sizes(case: Case) -> Iterator[Case]:
    """Dimensions of one size together, with the numbers that are equal to it, then without, then one by one."""
    tensors = _tensors(case)
    numbers = [(place, value) for place, value in places(case) if type(value) is int]
    for size in sorted({size for _, tensor in tensors for size in tensor.shape}, reverse=True):
        same = [
            (place, dim) for place, tensor in tensors for dim, each in enumerate(tensor.shape) if each == size
        ]
        equal = [place for place, value in numbers if value == size]
        for smaller in _smaller(size):
            if equal:
                yield put_all(_resized(case, same, smaller), dict.fromkeys(equal, smaller))
            yield _resized(case, same, smaller)
            if len(same) > 1:
                for one in same:
                    yield _resized(case, [one], smaller)


def _smaller(size: int) -> list[int]:
    """Sizes to try: what gets down fast, then powers of two, which kernels are made for, then each from below."""
    fast = [1, size // 2, size - size // 4, size - 1]
    powers = [1 << bit for bit in range(1, size.bit_length())]
    scan = range(1, size) if size <= _MOST_SCANNED else ()
    return [each for each in dict.fromkeys([*fast, *powers, *scan]) if 0 < each < size]


def _resized(case: Case, where: list[tuple[Place, int]], size: int) -> Case:
    shapes: dict[Place, tuple[int, ...]] = {}
    for place, value in _tensors(case):
        dims = [dim for other, dim in where if other == place]
        if dims:
            shapes[place] = tuple(size if dim in dims else each for dim, each in enumerate(value.shape))
    return with_shapes(case, shapes)


def _fewer_dimensions(case: Case) -> Iterator[Case]:
    """All tensors with as many dimensions lose the same one; then each tensor by itself."""
    tensors = _tensors(case)
    for rank in sorted({len(tensor.shape) for _, tensor in tensors}, reverse=True):
        same = [(place, tensor) for place, tensor in tensors if len(tensor.shape) == rank]
        for dim in range(rank):
            for group in _together_then_alone(same):
                shapes = {place: tensor.shape[:dim] + tensor.shape[dim + 1 :] for place, tensor in group}
                yield with_shapes(case, shapes, dropped=dim)


def _one_dimension(case: Case) -> Iterator[Case]:
    """Tensors that are all of one shape become rows: what is computed element by element does not mind."""
    tensors = _tensors(case)
    shapes = {tensor.shape for _, tensor in tensors}
    if len(shapes) == 1 and len(tensors[0][1].shape) > 1 and all(tensor.is_plain for _, tensor in tensors):
        yield put_all(case, {place: replace(tensor, shape=(tensor.elements,)) for place, tensor in tensors})


def _plain_layouts(case: Case) -> Iterator[Case]:
    for place, value in _tensors(case):
        if value.is_plain:
            continue
        if value.contents.draw is Draw.STORED:
            yield with_shapes(case, {place: value.shape}, plain=True)
            continue
        yield put(case, place, replace(value, stride=None, offset=0))
        if value.offset and value.stride is not None:
            yield put(case, place, replace(value, offset=0))
            yield put(case, place, replace(value, stride=None))
        if value.offset > 1:
            yield put(case, place, replace(value, offset=1))


def _common_dtypes(case: Case) -> Iterator[Case]:
    """float32 for what has fractions, int64 for whole numbers: all tensors of a dtype together."""
    tensors = _tensors(case)
    for dtype in sorted({tensor.dtype for _, tensor in tensors}):
        common = "float32" if notation.is_floating(dtype) else "int64"
        if dtype in (common, "bool"):
            continue
        group = [(place, tensor) for place, tensor in tensors if tensor.dtype == dtype]
        if all(tensor.contents.draw is not Draw.STORED for _, tensor in group):
            yield put_all(case, {place: replace(tensor, dtype=common) for place, tensor in group})


def _simpler_contents(case: Case) -> Iterator[Case]:
    for place, value in _tensors(case):
        special = value.contents.special
        for index in range(len(special)):
            fewer = replace(value.contents, special=special[:index] + special[index + 1 :])
            yield put(case, place, replace(value, contents=fewer))
        for contents in _SIMPLEST_FIRST:
            if replace(contents, special=special) == value.contents:
                break
            yield put(case, place, replace(value, contents=replace(contents, special=special)))


def _simpler_numbers(case: Case) -> Iterator[Case]:
    for place, value in places(case):
        for simpler in _simpler_number(value):
            yield put(case, place, simpler)


def _simpler_number(value: CaseValue) -> list[CaseValue]:
    if value is True:
        return [False]
    if type(value) is int and value not in (0, 1):
        return [0, 1, *([-value] if value < 0 else []), *_smaller(abs(value))]
    if isinstance(value, float) and value not in (0.0, 1.0):
        return [0.0, 1.0]
    return [0] if type(value) is int and value == 1 else []


PASSES: tuple[Pass, ...] = (
    _fewer_arguments,
    _shorter_lists,
    _one_dimension,
    _smaller_sizes,
    _fewer_dimensions,
    _plain_layouts,
    _common_dtypes,
    _simpler_contents,
    _simpler_numbers,
)


MOST_TRIALS = 2000
AGAIN = 2  # how often what was found has to fail once more
MOST_DEATHS = 50  # each costs a new process, or the time that a case may take

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+(\.\d+)?(e[+-]?\d+)?")
_LIST = re.compile(r"#(?:(?:, *|x)#)+")  # sizes: there are fewer of them where a dimension is gone

Try = Callable[[Case], CaseOutcome]
Progress = Callable[[int, Case], None]


@dataclass(frozen=True)
class Smallest:
    """The smallest case that was found."""

    case: Case
    outcome: CaseOutcome
    trials: int
    complete: bool  # False: the trials were used up before nothing could be made smaller
    # False: the same case does not fail every time, and what was found may not be the smallest
    steady: bool = True


def shrink(
    case: Case, outcome: CaseOutcome, attempt: Try, progress: Progress | None = None, most: int = MOST_TRIALS
) -> Smallest:
    """Make the case simpler, step by step, as long as it fails in the same way; the same case gives the same result."""
    search = _Search(case, outcome, attempt, progress, most)
    while any(search.improve(each) for each in PASSES) and search.has_trials_left:
        pass
    complete = search.has_trials_left
    return Smallest(search.case, search.outcome, search.trials, complete, search.fails_again())


def failure_key(outcome: CaseOutcome) -> tuple[str, ...]:
    """What two outcomes have in common that are the same failure: messages but for their numbers."""
    if outcome.kind is CaseVerdict.DIFFERS:
        return (outcome.kind.value, outcome.check, outcome.aspect)
    if outcome.kind is CaseVerdict.RAISES:
        return (outcome.kind.value, outcome.check, _LIST.sub("#", _NUMBER.sub("#", outcome.message)))
    if outcome.kind is CaseVerdict.HANGS:
        return (outcome.kind.value,)
    return (outcome.kind.value, outcome.message.partition(":")[0])


class _Search:
    """The smallest case so far, and what was tried."""

    def __init__(
        self, case: Case, outcome: CaseOutcome, attempt: Try, progress: Progress | None, most: int
    ) -> None:
        self.case = case
        self.outcome = outcome
        self.trials = 0
        self._wanted = failure_key(outcome)
        self._attempt = attempt
        self._progress = progress
        self._most = most
        self._deaths = 0
        self._tried: set[str] = {described_call(case)}

    @property
    def has_trials_left(self) -> bool:
        return self.trials < self._most and self._deaths < MOST_DEATHS

    def improve(self, simpler: Pass) -> bool:
        """Take the first simpler case that fails alike, again and again; whether there was one."""
        first = self.case
        candidates = simpler(self.case)
        while self.has_trials_left and (candidate := next(candidates, None)) is not None:
            if self._fails_alike(candidate):
                self.case = candidate
                candidates = simpler(candidate)
        return self.case is not first

    def fails_again(self) -> bool:
        """Whether the case fails alike whenever it is run."""
        return all(failure_key(self._attempt(self.case)) == self._wanted for _ in range(AGAIN))

    def _fails_alike(self, candidate: Case) -> bool:
        text = described_call(candidate)
        if text in self._tried:
            return False
        self._tried.add(text)
        self.trials += 1
        if self._progress is not None:
            self._progress(self.trials, self.case)
        outcome = self._attempt(candidate)
        self._deaths += outcome.kind in (CaseVerdict.CRASHES, CaseVerdict.HANGS)
        if failure_key(outcome) != self._wanted:
            return False
        self.outcome = outcome
        return True

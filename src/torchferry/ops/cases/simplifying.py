"""The ways in which a case can be made simpler, each a list of simpler cases, the simplest first. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from torchferry.ops.cases import dtypes
from torchferry.ops.cases.model import Case, CaseValue, Contents, Draw, TensorInput
from torchferry.ops.cases.places import Place, places, put, put_all, with_shapes

Pass = Callable[[Case], Iterator[Case]]

_MOST_SCANNED = 64  # sizes below which every smaller one is tried
_SIMPLEST_FIRST = (
    Contents(Draw.FULL, 0),
    Contents(Draw.FULL, 1),
    Contents(Draw.ARANGE),
    Contents(Draw.INTS, 0, 2),
    Contents(Draw.INTS, -10, 10),
    Contents(Draw.NORMAL),
)


def _fewer_arguments(case: Case) -> Iterator[Case]:
    for index in range(len(case.kwargs)):
        yield replace(case, kwargs=case.kwargs[:index] + case.kwargs[index + 1 :])
    for index in range(len(case.init)):
        if not case.init[index][0].isdigit():
            yield replace(case, init=case.init[:index] + case.init[index + 1 :])
    if case.args:
        yield replace(case, args=case.args[:-1])


def _shorter_lists(case: Case) -> Iterator[Case]:
    """Lists of the same length lose the same item, as those of the foreach operators; then each by itself."""
    lists = [(place, value) for place, value in places(case) if isinstance(value, tuple)]
    for length in sorted({len(value) for _, value in lists}, reverse=True):
        same = [(place, value) for place, value in lists if len(value) == length]
        for group in [same, *([[each] for each in same] if len(same) > 1 else [])]:
            if length > 2:
                yield put_all(case, {place: value[: length // 2] for place, value in group})
                yield put_all(case, {place: value[length // 2 :] for place, value in group})
            for drop in range(length if length > 1 else 0):
                yield put_all(case, {place: value[:drop] + value[drop + 1 :] for place, value in group})


def _smaller_sizes(case: Case) -> Iterator[Case]:
    """Dimensions of one size together, with the numbers that are equal to it, then without, then one by one."""
    tensors = [(place, value) for place, value in places(case) if isinstance(value, TensorInput)]
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
    for place, value in places(case):
        dims = [dim for other, dim in where if other == place]
        if dims and isinstance(value, TensorInput):
            shapes[place] = tuple(size if dim in dims else each for dim, each in enumerate(value.shape))
    return with_shapes(case, shapes)


def _fewer_dimensions(case: Case) -> Iterator[Case]:
    """All tensors with as many dimensions lose the same one; then each tensor by itself."""
    tensors = [(place, value) for place, value in places(case) if isinstance(value, TensorInput)]
    for rank in sorted({len(tensor.shape) for _, tensor in tensors}, reverse=True):
        same = [(place, tensor) for place, tensor in tensors if len(tensor.shape) == rank]
        for dim in range(rank):
            for group in [same, *([[each] for each in same] if len(same) > 1 else [])]:
                shapes = {place: tensor.shape[:dim] + tensor.shape[dim + 1 :] for place, tensor in group}
                yield with_shapes(case, shapes, dropped=dim)


def _one_dimension(case: Case) -> Iterator[Case]:
    """Tensors that are all of one shape become rows: what is computed element by element does not mind."""
    tensors = [(place, value) for place, value in places(case) if isinstance(value, TensorInput)]
    shapes = {tensor.shape for _, tensor in tensors}
    if len(shapes) == 1 and len(tensors[0][1].shape) > 1 and all(tensor.is_plain for _, tensor in tensors):
        yield put_all(case, {place: replace(tensor, shape=(tensor.elements,)) for place, tensor in tensors})


def _plain_layouts(case: Case) -> Iterator[Case]:
    for place, value in places(case):
        if isinstance(value, TensorInput) and not value.is_plain and value.contents.draw is not Draw.STORED:
            yield put(case, place, replace(value, stride=None, offset=0))
            if value.offset and value.stride is not None:
                yield put(case, place, replace(value, offset=0))
                yield put(case, place, replace(value, stride=None))
            if value.offset > 1:
                yield put(case, place, replace(value, offset=1))
        elif isinstance(value, TensorInput) and not value.is_plain:
            yield with_shapes(case, {place: value.shape}, plain=True)


def _common_dtypes(case: Case) -> Iterator[Case]:
    """float32 for what has fractions, int64 for whole numbers: all tensors of a dtype together."""
    tensors = [(place, value) for place, value in places(case) if isinstance(value, TensorInput)]
    for dtype in sorted({tensor.dtype for _, tensor in tensors}):
        common = "float32" if dtypes.is_floating(dtype) else "int64"
        if dtype in (common, "bool"):
            continue
        group = [(place, tensor) for place, tensor in tensors if tensor.dtype == dtype]
        if all(tensor.contents.draw is not Draw.STORED for _, tensor in group):
            yield put_all(case, {place: replace(tensor, dtype=common) for place, tensor in group})


def _simpler_contents(case: Case) -> Iterator[Case]:
    for place, value in places(case):
        if not isinstance(value, TensorInput):
            continue
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

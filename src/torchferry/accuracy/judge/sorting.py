"""What kind of error a wrong result looks like: tries explanations, one after the other, on its elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from torchferry.accuracy.judge.errors import Compared, flat
from torchferry.accuracy.judge.model import ErrorKind
from torchferry.accuracy.judge.places import describe_places
from torchferry.text import Text

_EXPLAINED = 0.99  # of the elements that an explanation must fit
_SLACK = 4.0  # times the limit of an element: the explanation is computed from the right result, not as the kernel did
_FEW = 0.5  # share of wrong elements below which their places say most
_SMALL = 2.0**-5  # relative to the result: the most that too few digits explain
Sorted = tuple[ErrorKind, Text]

_NAN = Text(
    "{wrong} of {count} elements are NaN or infinite and should not be",
    "{count} 个元素中有 {wrong} 个不应为 NaN 或无穷",
)
_FINITE = Text(
    "{wrong} of {count} elements should be infinite or NaN", "{count} 个元素中有 {wrong} 个应为无穷或 NaN"
)
_ZERO = Text("all elements are zero", "所有元素均为零")
_UNWRITTEN = Text("it was left as it was before the call", "调用前后内容未变：没有被写入")
_STALE = Text(
    "it holds the results of an earlier call (number {number})", "内容是更早一次调用（编号 {number}）的结果"
)
_SIGN = Text("it has the wrong sign", "符号相反")
_SCALE = Text("it is {factor:.6g} times what it should be", "结果是正确值的 {factor:.6g} 倍")
_OFFSET = Text("a constant was added to it: {offset:.4g}", "结果多加了常数 {offset:.4g}")
_NOT_ADDED = Text("{name} was not added to it", "没有累加 {name}")
_ADDED_TWICE = Text("{name} was added once too often", "{name} 多加了一次")
_TRANSPOSED = Text("its last two dimensions are exchanged", "最后两维被转置")
_SHIFTED = Text(
    "its elements are {by} places off along dimension {dimension}", "元素沿维度 {dimension} 错位 {by}"
)
_PRECISION = Text(
    "it was rounded, or added up, with too few digits: its errors are {ratio:.3g} times as large as is normal",
    "舍入或累加的有效位数不足：误差是正常值的 {ratio:.3g} 倍",
)
_BIASED = Text(
    "its errors are small but go one way: {ratio:.3g} times as far as chance allows",
    "误差很小但方向一致：是随机误差允许值的 {ratio:.3g} 倍",
)
_VALUES = Text("{wrong} of {count} elements are wrong", "{count} 个元素中有 {wrong} 个错误")


@dataclass(frozen=True)
class Context:
    """What else is known of the call: it may have come into the result."""

    shape: tuple[int, ...]
    before: torch.Tensor | None = None  # what a written argument held before
    addends: Sequence[tuple[str, torch.Tensor]] = field(default=())  # inputs that may have been left out
    earlier: Callable[[], tuple[int, torch.Tensor] | None] = lambda: (
        None
    )  # what the same operator gave before
    misread: Callable[[], Iterator[tuple[Text, torch.Tensor]]] = lambda: iter(
        ()
    )  # what other arguments would have given
    unread: Callable[[torch.Tensor], Iterator[tuple[Text, torch.Tensor]]] = lambda _wrong: iter(
        ()
    )  # what inputs that were not there yet would have given


def sort_of(compared: Compared, context: Context) -> Sorted:
    """The first explanation that fits."""
    wrong = compared.wrong
    count, number = compared.mine.numel(), int(wrong.sum())
    if compared.errors.nonfinite:
        is_mine = bool((~compared.mine.isfinite() & compared.right.isfinite()).any())
        text = (_NAN if is_mine else _FINITE).format(wrong=compared.errors.nonfinite, count=count)
        return ErrorKind.NAN if bool(compared.mine.isnan().any()) or not is_mine else ErrorKind.INFINITE, text
    if number == 0:
        return _of_means(compared)
    for explained in itertools.chain(_wholes(compared, context), _where(compared, wrong, context.shape)):
        return explained
    if number < _FEW * count and number * 100 < count:
        return ErrorKind.POINTS, _VALUES.format(wrong=number, count=count)
    if compared.errors.relative < _SMALL:
        return ErrorKind.PRECISION, _PRECISION.format(ratio=compared.errors.worst)
    return ErrorKind.VALUES, _VALUES.format(wrong=number, count=count)


def _of_means(compared: Compared) -> Sorted:
    """No element is beyond its limit: what all of them have in common is."""
    factor = _factor(compared)
    errors = compared.errors
    if (
        errors.bias > errors.mean_square
        and abs(factor - 1.0) > 1e-5
        and _is_better(compared, compared.right * factor)
    ):
        return ErrorKind.SCALE, _SCALE.format(factor=factor)
    if errors.bias > errors.mean_square:
        return ErrorKind.PRECISION, _BIASED.format(ratio=errors.bias)
    return ErrorKind.PRECISION, _PRECISION.format(ratio=errors.worst)


def _wholes(compared: Compared, context: Context) -> Iterator[Sorted]:
    """Explanations for the whole tensor."""
    mine, right = compared.mine, compared.right
    if not bool(mine.any()):
        yield ErrorKind.ZERO, _ZERO
    if context.before is not None and torch.equal(mine, flat(context.before)):
        yield ErrorKind.UNWRITTEN, _UNWRITTEN
    earlier = context.earlier()
    if earlier is not None and _fits(compared, flat(earlier[1]), only_wrong=True):
        yield ErrorKind.STALE, _STALE.format(number=earlier[0])
    if _fits(compared, -right):
        yield ErrorKind.SIGN, _SIGN
    yield from _accumulations(compared, context)
    yield from _places_exchanged(compared, context.shape)
    for text, result in context.misread():
        if _fits(compared, flat(result)):
            yield ErrorKind.MISREAD, text
    for text, result in context.unread(compared.wrong):
        if _fits(compared, flat(result)):
            yield ErrorKind.LATE, text
    factor = _factor(compared)
    if _fits(compared, right * factor) and _is_better(compared, right * factor):
        yield ErrorKind.SCALE, _SCALE.format(factor=factor)
    offset = float((mine - right).median())
    if offset and _fits(compared, right + offset):
        yield ErrorKind.BIAS, _OFFSET.format(offset=offset)


def _accumulations(compared: Compared, context: Context) -> Iterator[Sorted]:
    addends = [*context.addends, *([("", context.before)] if context.before is not None else [])]
    for name, tensor in addends:
        try:
            addend = flat(tensor.expand(context.shape))
        except RuntimeError:
            continue
        if addend.shape != compared.right.shape or not bool(addend.any()):
            continue
        named = name or "the former content"
        if _fits(compared, compared.right - addend):
            yield ErrorKind.ACCUMULATE, _NOT_ADDED.format(name=named)
        if _fits(compared, compared.right + addend):
            yield ErrorKind.ACCUMULATE, _ADDED_TWICE.format(name=named)


def _places_exchanged(compared: Compared, shape: tuple[int, ...]) -> Iterator[Sorted]:
    if compared.right.numel() != _size(shape):
        return

    def fits(move: Callable[[torch.Tensor], torch.Tensor], share: float = _EXPLAINED) -> bool:
        right, limit = (move(each.reshape(shape)).reshape(-1) for each in (compared.right, compared.limit))
        return _fits(replace(compared, limit=torch.maximum(compared.limit, limit)), right, share)

    if len(shape) >= 2 and min(shape[-2:]) > 1 and fits(lambda tensor: tensor.transpose(-1, -2)):
        yield ErrorKind.TRANSPOSED, _TRANSPOSED
    for dimension, length in enumerate(shape):
        for by in (1, -1) if length > 2 else ():
            if fits(lambda tensor, by=by, at=dimension: tensor.roll(by, at), 1.0 - 1.5 / length):  # type: ignore[misc]
                yield ErrorKind.SHIFTED, _SHIFTED.format(by=by, dimension=dimension)


def _where(compared: Compared, wrong: torch.Tensor, shape: tuple[int, ...]) -> Iterator[Sorted]:
    if compared.right.numel() == _size(shape):
        found = describe_places(wrong.reshape(shape), compared.mine.reshape(shape))
        if found is not None:
            yield found


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for each in shape:
        size *= each
    return size


def _fits(
    compared: Compared, explanation: torch.Tensor, share: float = _EXPLAINED, only_wrong: bool = False
) -> bool:
    """Whether the result is what the explanation says, where that is not what is right anyway."""
    if explanation.shape != compared.mine.shape:
        return False
    limit = compared.limit * _SLACK
    fits = (compared.mine - explanation).abs() <= limit
    tells = (explanation - compared.right).abs() > limit
    if only_wrong:
        tells = compared.wrong & (explanation != 0)
        return bool(tells.any()) and bool(fits[compared.wrong].double().mean() >= share)
    return (
        bool(tells.any())
        and float(fits[tells].double().mean()) >= share
        and float(fits.double().mean()) >= share
    )


def _factor(compared: Compared) -> float:
    """By least squares; by the median where a few elements are far off."""
    right = torch.where(compared.right.isfinite() & compared.mine.isfinite(), compared.right, 0.0)
    total = float(right.square().sum())
    return float((right * compared.mine.nan_to_num(0.0, 0.0, 0.0)).sum()) / total if total else 1.0


def _is_better(compared: Compared, explanation: torch.Tensor) -> bool:
    """Whether it explains most of the error."""
    left = (compared.mine - explanation).norm()
    return bool(left < 0.9 * (compared.mine - compared.right).norm())

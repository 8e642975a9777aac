"""What a call takes, said in sentences: on each device, and beside the times of another machine. Imports no torch.

Those come from a file that `ferry case --save-times` wrote there, from a profiler's trace of a run there, or from what
`ferry record kernels --format json` made of one. In the last two the kernels count that the same operators launched on
tensors of the same shapes and dtypes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from torchferry.errors import InputError, not_readable
from torchferry.operators.names import is_plumbing
from torchferry.readiness.cases.model import TimedCall, Times
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.traces.names import DTYPES
from torchferry.units import duration, percent

CPU = "cpu"
Seconds = Sequence[float]
PASSES = {"forward": Text("forward", "前向"), "backward": Text("backward", "反向")}
_TIME = Text("time of one call, {which}: {times}", "单次调用用时（{which}）：{times}")
_ONE = Text("{device} {middle} ({low} to {high})", "{device} {middle}（{low} 到 {high}）")
_RATIO = Text(
    "{which}: {one} takes {ratio} times as long as {other} ({low} to {high} in the middle half of {rounds} rounds)",
    "{which}：{one} 的用时是 {other} 的 {ratio} 倍（{rounds} 轮的中间一半为 {low} 到 {high}）",
)
_ELSEWHERE = Text(
    "{which}: {one} takes {ratio} times as long as {other} in {file} ({low} to {high})",
    "{which}：{one} 的用时是 {file} 中 {other} 的 {ratio} 倍（{low} 到 {high}）",
)
_KERNELS = Text(
    "{which}: {one} takes {ratio} times as long as the kernels of {other} in {file}, {time} in {calls} calls of {operators} "
    "({low} to {high})",
    "{which}：{one} 的用时是 {file} 中 {other} kernel 的 {ratio} 倍，后者为 {time}（{operators} 的 {calls} 次调用；{low} 到 {high}）",
)
_MISSING = Text(
    "{which}: {file} has no {operators} on tensors of these shapes and dtypes; it has {known}",
    "{which}：{file} 中没有使用这些形状与类型的 {operators}；其中有 {known}",
)
_ROOFLINE = Text(
    "{which}: {device} needs at least {least}; it reaches {share} of that speed",
    "{which}：{device} 最快可在 {least} 内完成；达到该速度的 {share}",
)
_OF_CPU = Text(
    "the device is simulated by the CPU: its time is the CPU's and tells nothing about the real device",
    "该设备由 CPU 模拟：其用时即 CPU 的用时，不代表真实设备",
)
_EVENTS = Text(
    "measured between events of {devices}, which includes host time where the host can't keep up",
    "以 {devices} 的事件计时；主机跟不上时，其中含主机的开销",
)
_NOT_TIMED = Text("not timed: {reason}", "未能计时：{reason}")
_SHOWN = 3  # of what a trace has instead


def time_sentences(times: Times) -> Iterator[Text]:
    """What was measured, and each device against the CPU, round by round."""
    if times.error:
        yield _NOT_TIMED.format(reason=one_line(times.error))
        return
    for name, found in times.passes.items():
        which = PASSES[name]
        said = [_one(device, each) for device, each in found.items()]
        yield _TIME.format(which=which, times=_joined(said))
        for device, each in found.items():
            if device != CPU:
                ratios = [one / other for one, other in zip(each, found[CPU], strict=True)]
                yield _RATIO.format(which=which, one=device, other=CPU, rounds=len(ratios), **_spread(ratios))
    if times.by_events:
        yield _EVENTS.format(devices=", ".join(times.by_events))
    if times.simulated:
        yield _OF_CPU


def _one(device: str, seconds: Seconds) -> Text:
    low, middle, high = map(duration, _quarters(seconds))
    return _ONE.format(device=device, low=low, middle=middle, high=high)


def _joined(parts: Iterable[Text]) -> Text:
    english, chinese = zip(*parts, strict=True)
    return Text(", ".join(english), "、".join(chinese))


def _quarters(values: Seconds) -> tuple[float, float, float]:
    """What a quarter is below, the half, three quarters."""
    low, middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return low, middle, high


def _spread(ratios: Seconds) -> dict[str, str]:
    low, middle, high = _quarters(ratios)
    found = {"ratio": middle, "low": low, "high": high}
    return {name: f"{value:.2g}" if value < 100 else f"{value:,.0f}" for name, value in found.items()}


# Times of another machine.


@dataclass(frozen=True)
class KernelTimes:
    """What the kernels took that calls of one operator launched, on tensors of one sort."""

    operator: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]  # each once
    seconds: tuple[float, ...]  # of each call


@dataclass(frozen=True)
class OtherTimes:
    """Times of another machine, in one of two forms."""

    saved: Mapping[str, Mapping[str, list[float]]]  # pass -> type of the device -> of each round
    kernels: tuple[KernelTimes, ...] = ()
    device: str = ""  # of the kernels


def read_other(path: Path) -> OtherTimes:
    """The times in a file, whatever has written it."""
    try:
        with path.open("rb") as file:
            start = file.read(1 << 12)
    except OSError as error:
        raise not_readable(path, error) from None
    if re.match(rb'\s*\[\s*\{\s*"operator"', start):
        return OtherTimes({}, tuple(_listed_kernels(path)), "the GPU")
    if path.suffix == ".gz" or (start.lstrip()[:1] in (b"{", b"[") and b'"torchferry-times"' not in start):
        return _of_trace(path)
    return OtherTimes(read_times(path))


def _of_trace(path: Path) -> OtherTimes:
    from torchferry.readiness.trace.reader import read_launches

    launches = read_launches(path)
    found: dict[tuple[str, Any, Any], list[float]] = defaultdict(list)
    for launch in launches.calls:
        inputs = launch.signature.inputs
        shapes = tuple(spec.shape for spec in inputs)
        key = (_plain(launch.signature.operator), shapes, tuple(dict.fromkeys(spec.dtype for spec in inputs)))
        found[key].append(sum(nanoseconds for _, nanoseconds in launch.kernels) / 1e9)
    if not any(shapes for _, shapes, _ in found):
        raise InputError(
            Text(
                f"{path}: has no shapes; record the trace with record_shapes=True",
                f"{path}：没有形状；采集 trace 时请设置 record_shapes=True",
            )
        )
    if not any(any(each) for each in found.values()):
        raise InputError(
            Text(
                f"{path}: no operator launched a kernel; profile the device's activity too",
                f"{path}：没有算子下发 kernel；采集时请包含设备活动",
            )
        )
    return OtherTimes(
        {}, tuple(KernelTimes(*key, tuple(each)) for key, each in found.items()), launches.device
    )


def _listed_kernels(path: Path) -> Iterator[KernelTimes]:
    """What `ferry record kernels --format json` wrote, without or with --of."""
    wrong = InputError(
        Text(
            f"{path}: not a list of kernels with times; `ferry record kernels` writes one",
            f"{path}：不是带耗时的 kernel 列表；可用 `ferry record kernels` 生成",
        )
    )
    try:
        rows = json.loads(path.read_text("utf-8"))
        for row in rows:
            shapes = tuple(tuple(map(int, shape)) for shape in row["shapes"])
            seconds = float(row["microseconds"]) / 1e6 / int(row["calls"])
            yield KernelTimes(
                _plain(row["operator"]), shapes, tuple(row["dtypes"]), (seconds,) * int(row["calls"])
            )
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        raise wrong from None


def read_times(path: Path) -> dict[str, Mapping[str, list[float]]]:
    """What `ferry case --save-times` has written, on this machine or another: seconds by pass and type of the device."""
    wrong = InputError(
        Text(
            f"{path}: not a file of times; write one with ferry case OPERATOR --time --save-times FILE, or "
            "give a profiler's trace",
            f"{path}：不是耗时文件；可用 ferry case OPERATOR --time --save-times FILE 生成，也可以给出 "
            "profiler 的 trace",
        )
    )
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise not_readable(path, error) from None
    except ValueError:
        raise wrong from None
    found = (
        {"forward": data.get("seconds"), "backward": data.get("backward")} if isinstance(data, dict) else {}
    )
    for seconds in (each for name, each in found.items() if each or name == "forward"):
        if not isinstance(seconds, dict) or not seconds or not all(map(_is_measured, seconds.values())):
            raise wrong
    if not found:
        raise wrong
    return {name: each for name, each in found.items() if each}


def _is_measured(each: object) -> bool:
    is_list = isinstance(each, list) and bool(each)
    return is_list and all(isinstance(one, float) and one > 0 for one in each)  # type: ignore[attr-defined]


def _plain(operator: str) -> str:
    """Traces do not tell overloads."""
    return operator.partition(".")[0]


def other_sentences(times: Times, other: OtherTimes, file: str) -> Iterator[Text]:
    """The device of the case against what another machine took: a GPU there, else the CPU."""
    for name, found in times.passes.items():
        mine = next((device for device in found if device != CPU), CPU)
        if other.kernels:
            yield _beside_kernels(times, name, mine, other, file)
            continue
        saved = other.saved.get(name, {})
        one = next((device for device in saved if device != CPU), CPU)
        if mine != CPU and saved.get(one):
            ratios = [left / right for left in found[mine] for right in saved[one]]
            yield _ELSEWHERE.format(which=PASSES[name], one=mine, other=one, file=file, **_spread(ratios))


def _beside_kernels(times: Times, name: str, mine: str, other: OtherTimes, file: str) -> Text:
    """The time of a pass against that of the kernels of the same operators."""
    wanted = [call for call in times.operators if call.is_backward is (name == "backward")]
    found = [(call, _kernels_of(call, other.kernels)) for call in wanted]
    working = [(call, each) for call, each in found if each is not None and any(each.seconds)]
    missing = [call for call, each in found if each is None and not is_plumbing(call.operator)]
    which = PASSES[name]
    if missing or not working:
        names = _named(missing or wanted)
        known = [
            each for each in other.kernels if each.operator in {_plain(call.operator) for call in wanted}
        ]
        return _MISSING.format(which=which, file=file, operators=names, known=_shown(known))
    kernels = [each.seconds for _, each in working if each is not None]
    seconds = kernels[0] if len(kernels) == 1 else (sum(map(median, kernels)),)
    ratios = [one / another for one in times.passes[name][mine] for another in seconds if another > 0]
    return _KERNELS.format(
        which=which,
        one=mine,
        other=other.device,
        file=file,
        time=duration(median(seconds)),
        calls=len(kernels[0]),
        operators=_named([call for call, _ in working]),
        **_spread(ratios),
    )


def _kernels_of(call: TimedCall, kernels: Iterable[KernelTimes]) -> KernelTimes | None:
    shapes, dtypes = _tensors_of(call)
    for each in kernels:
        same_tensors = each.shapes == shapes and set(each.dtypes) == set(dtypes)
        if each.operator == _plain(call.operator) and same_tensors:
            return each
    return None


def _tensors_of(call: TimedCall) -> tuple[tuple[tuple[int, ...], ...], list[str]]:
    """Shapes and dtypes, in the order of the arguments; those of lists one by one."""
    shapes: list[tuple[int, ...]] = []
    dtypes: list[str] = []
    for dims, kind in zip(call.dims, call.types, strict=True):
        if kind == "TensorList":
            shapes += map(tuple, dims)
        elif kind and kind != "Scalar":
            shapes.append(tuple(dims))
            dtypes.append(DTYPES.get(kind, kind))
    return tuple(shapes), list(dict.fromkeys(dtypes))


def _named(calls: Iterable[TimedCall]) -> str:
    return ", ".join(dict.fromkeys(call.operator for call in calls))


def _shown(known: Sequence[KernelTimes]) -> str:
    """What a trace has of these operators, in short."""
    some = [
        f"{each.operator}({' '.join('x'.join(map(str, shape)) or '()' for shape in each.shapes)} {' '.join(each.dtypes)})"
        for each in known[:_SHOWN]
    ]
    return ", ".join(some) + (" ..." if len(known) > _SHOWN else "") if some else "-"


# How near a device comes to what it can do, by those who know that.

Least = Callable[
    [str, Sequence[TimedCall]], float | None
]  # device's name, operators -> seconds; None: not known


def roofline_sentences(times: Times, least: Least) -> Iterator[Text]:
    """The least time in which each named device can do each pass, and how near it comes."""
    for name, found in times.passes.items():
        calls = [call for call in times.operators if call.is_backward is (name == "backward")]
        for device, seconds in found.items():
            best = least(times.names.get(device, ""), calls) if times.names.get(device) else None
            if best:
                share = percent(min(best / median(seconds), 1.0))
                yield _ROOFLINE.format(
                    which=PASSES[name], device=times.names[device], least=duration(best), share=share
                )

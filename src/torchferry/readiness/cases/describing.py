"""A case in one line, in the notation of the command line: aten::max.dim(8:int64:ints(-10,10), 0). Imports no torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median, quantiles

from torchferry.readiness.cases.model import (
    Case,
    CaseOutcome,
    CaseValue,
    CaseVerdict,
    Draw,
    TensorContents,
    TensorInput,
    Times,
)
from torchferry.readiness.model import Special
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.units import duration


def described_call(case: Case) -> str:
    """A case as a call: aten::max.dim(8:int64:ints(-10,10), 0)."""
    made = f"({_listed((), case.init)})" if case.init else ""
    return f"{case.callee.name}{made}({_listed(case.args, case.kwargs)})"


def described(value: CaseValue) -> str:
    """An argument in the notation of the command line."""
    if isinstance(value, TensorInput):
        size = "x".join(map(str, value.shape)) or "scalar"
        strides = [f"strides({','.join(map(str, value.stride))})"] if value.stride is not None else []
        offset = [f"offset({value.offset})"] if value.offset else []
        return ":".join([size, value.dtype, *_contents(value.contents), *strides, *offset])
    if isinstance(value, Special):
        return value.kind if value.kind in ("device", "generator") else value.text
    if isinstance(value, tuple):
        items = ", ".join(map(described, value))
        return f"list({items})" if any(isinstance(item, TensorInput) for item in value) else f"[{items}]"
    return repr(value)


def _listed(args: tuple[CaseValue, ...], kwargs: tuple[tuple[str, CaseValue], ...]) -> str:
    named = [described(value) if name.isdigit() else f"{name}={described(value)}" for name, value in kwargs]
    return ", ".join([*map(described, args), *named])


def _contents(contents: TensorContents) -> list[str]:
    special = "".join(f"+{value}" for value in contents.special)
    if contents.draw is Draw.DEFAULT:
        return []
    if contents.draw in (Draw.UNIFORM, Draw.INTS):
        return [f"{contents.draw.value}({contents.low:g},{contents.high:g}){special}"]
    if contents.draw is Draw.FULL:
        return [f"full({contents.low:g}){special}"]
    if contents.draw is Draw.STORED:
        return [f"recorded({contents.key})"]
    return [contents.draw.value + special]


_DEVICE = Text("{vendor}'s device", "{vendor} 设备")
_SIMULATED = Text("{vendor}'s simulated device", "模拟的 {vendor} 设备")
_SAID = {
    CaseVerdict.EQUAL: Text(
        "equal: {device} computes what the CPU computes", "一致：{device}与 CPU 的结果相同"
    ),
    CaseVerdict.FALLS_BACK: Text(
        "falls back to the CPU: {device} has no kernel for {operators}; results are equal",
        "回退到 CPU：{device}没有 {operators} 的内核；结果一致",
    ),
    CaseVerdict.DIFFERS: Text(
        "differs on {device}, {check}: {message}", "不一致（{device}，{check}）：{message}"
    ),
    CaseVerdict.RAISES: Text(
        "raises on {device}, {check}: {message}", "报错（{device}，{check}）：{message}"
    ),
    CaseVerdict.CRASHES: Text(
        "crashes on {device}: the process {message}", "崩溃（{device}）：进程 {message}"
    ),
    CaseVerdict.HANGS: Text("hangs on {device}: {message}", "无响应（{device}）：{message}"),
    CaseVerdict.NO_DEVICE: Text("not run: {message}", "未运行：{message}"),
    CaseVerdict.INVALID: Text("the CPU refuses these inputs: {message}", "CPU 拒绝这些输入：{message}"),
}
WROTE = Text("wrote {file}", "已写入 {file}")
WROTE_WITH_DATA = Text(
    "wrote {file}, and its recorded tensors to {data}", "已写入 {file}，录制的张量写入 {data}"
)
SHRUNK = Text(
    "the smallest that fails alike ({trials} tried): {call}",
    "以同样方式失败的最小用例（尝试 {trials} 次）：{call}",
)
NOT_FINISHED = Text(
    "; there may be a smaller one: {trials} are the most that are tried",
    "；可能还有更小的：最多尝试 {trials} 次",
)
NOT_STEADY = Text(
    "it does not fail every time: run it several times, and do not take it for the smallest",
    "该用例并非每次都失败：请多次运行，它未必是最小用例",
)
NOTHING_TO_SHRINK = Text("it does not fail: there is nothing to shrink", "用例未失败：无需缩小")
TIME = Text("time of one call: {times}", "单次调用用时：{times}")
RATIO = Text(
    "{one} takes {ratio} times as long as {other} ({low} to {high} in the middle half of {rounds} rounds)",
    "{one} 的用时是 {other} 的 {ratio} 倍（{rounds} 轮的中间一半为 {low} 到 {high}）",
)
ELSEWHERE = Text(
    "{one} takes {ratio} times as long as {other} in {file} ({low} to {high})",
    "{one} 的用时是 {file} 中 {other} 的 {ratio} 倍（{low} 到 {high}）",
)
TIMES_OF_SIMULATION = Text(
    "the device is simulated by the CPU: its time says nothing of the real one's",
    "该设备由 CPU 模拟：其用时不代表真实设备",
)
NOT_TIMED = Text("not timed: {reason}", "未能计时：{reason}")
_CPU = "cpu"


def told_times(times: Times) -> Iterator[Text]:
    """What was measured, and each device against the CPU, round by round."""
    if times.error:
        yield NOT_TIMED.format(reason=one_line(times.error))
        return
    shown = ", ".join(f"{name} {duration(median(each))}" for name, each in times.seconds.items())
    yield TIME.format(times=shown)
    host = times.seconds[_CPU]
    for name, each in times.seconds.items():
        if name != _CPU:
            ratios = [one / other for one, other in zip(each, host, strict=True)]
            yield RATIO.format(one=name, other=_CPU, rounds=len(ratios), **_spread(ratios))
    if times.simulated:
        yield TIMES_OF_SIMULATION


def told_elsewhere(times: Times, elsewhere: Mapping[str, Sequence[float]], file: str) -> Iterator[Text]:
    """The device of the case against what was measured on another machine: a GPU there, else the CPU."""
    mine = next((name for name in times.seconds if name != _CPU), None)
    other = next((name for name in elsewhere if name != _CPU), _CPU)
    if mine is None or not elsewhere.get(other):
        return
    ratios = [one / another for one in times.seconds[mine] for another in elsewhere[other]]
    yield ELSEWHERE.format(one=mine, other=other, file=file, **_spread(ratios))


def _spread(ratios: list[float]) -> dict[str, str]:
    low, middle, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    found = {"ratio": middle, "low": low, "high": high}
    return {name: f"{value:.2g}" if value < 100 else f"{value:,.0f}" for name, value in found.items()}


def told(outcome: CaseOutcome, vendor: str) -> Text:
    """How a case came out, in one line."""
    device = (_SIMULATED if outcome.simulated else _DEVICE).format(vendor=vendor)
    return _SAID[outcome.kind].format(
        device=device,
        operators=", ".join(outcome.operators),
        check=outcome.check.removeprefix("test_"),
        message=one_line(outcome.message),
    )

"""How a case came out, in a sentence. Imports no torch."""

from __future__ import annotations

from torchferry.ops.cases.model import Kind, Outcome
from torchferry.report.safe import one_line
from torchferry.text import Text

_DEVICE = Text("{vendor}'s device", "{vendor} 设备")
_SIMULATED = Text("{vendor}'s simulated device", "模拟的 {vendor} 设备")
_SAID = {
    Kind.EQUAL: Text("equal: {device} computes what the CPU computes", "一致：{device}与 CPU 的结果相同"),
    Kind.FALLS_BACK: Text(
        "falls back to the CPU: {device} has no kernel for {operators}; results are equal",
        "回退到 CPU：{device}没有 {operators} 的内核；结果一致",
    ),
    Kind.DIFFERS: Text("differs on {device}, {check}: {message}", "不一致（{device}，{check}）：{message}"),
    Kind.RAISES: Text("raises on {device}, {check}: {message}", "报错（{device}，{check}）：{message}"),
    Kind.CRASHES: Text("crashes on {device}: the process {message}", "崩溃（{device}）：进程 {message}"),
    Kind.HANGS: Text("hangs on {device}: {message}", "无响应（{device}）：{message}"),
    Kind.NO_DEVICE: Text("not run: {message}", "未运行：{message}"),
    Kind.INVALID: Text("the CPU refuses these inputs: {message}", "CPU 拒绝这些输入：{message}"),
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


def told(outcome: Outcome, vendor: str) -> Text:
    """One line."""
    device = (_SIMULATED if outcome.simulated else _DEVICE).format(vendor=vendor)
    return _SAID[outcome.kind].format(
        device=device,
        operators=", ".join(outcome.operators),
        check=outcome.check.removeprefix("test_"),
        message=one_line(outcome.message),
    )

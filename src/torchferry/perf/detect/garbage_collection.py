"""Python's garbage collector stops the program."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.detect.events import COLLECTING, frames_like, marks, per_step
from torchferry.perf.detect.evidence import by_frame, by_name
from torchferry.perf.detect.model import needs_trace, trace_detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "garbage_collection"
MARK = "torchferry::gc"  # made by `ferry profile`
LEAST_SHARE = 0.01  # of the steps

_TITLE = Text("Python's garbage collector pauses the program", "Python 垃圾回收使程序停顿")
_SUMMARY = Text(
    "The collector runs {count:.1f} times per step and takes {share:.1%} of the time; the longest pause is "
    "{longest:.1f} ms.",
    "垃圾回收每步运行 {count:.1f} 次，占时间的 {share:.1%}；最长停顿 {longest:.1f} ms。",
)
_REMEDIES = (
    Text(
        "Call gc.collect() and gc.freeze() before the training loop, so that objects of the imports, the "
        "model and the data set are not scanned again.",
        "训练循环前调用 gc.collect() 与 gc.freeze()：导入、模型和数据集产生的对象不再被扫描。",
    ),
    Text(
        "Or call gc.disable(), and gc.collect() every few steps, at the same step on all ranks.",
        "或 gc.disable()，并每隔若干步 gc.collect()，各进程在同一步进行。",
    ),
)
_BASIS = Text("the pauses; with a frozen heap nearly all of them disappear", "停顿时间；冻结后几乎全部消失")
_CALL = "gc.collect()"
_ASKED = Text(
    "The program calls gc.collect() {count:.1f} times per step, {share:.1%} of the time.",
    "程序每步调用 gc.collect() {count:.1f} 次，占时间的 {share:.1%}。",
)
_LEAVE_OUT = Text(
    "Move gc.collect() out of the step: tensors without references are freed immediately anyway. If "
    "memory grows, find what still holds the tensors (such as a list of losses with their graphs).",
    "把 gc.collect() 移出单步：没有引用的张量会立即释放，并不需要它。若内存增长，"
    "请查找仍持有张量之处（如带计算图的损失列表）。",
)
_BASIS_ASKED = Text("the calls, if they are removed", "去掉这些调用所省的时间")
NO_MARKS = Text(
    "pauses of Python's garbage collector (`ferry profile` records them)",
    "Python 垃圾回收的停顿（由 `ferry profile` 记录）",
)


def lacks(run: Run) -> Text | None:
    """Only our own collector marks them; there, no marks means no pauses. Calls of gc.collect() are seen by frames."""
    if run.trace is None:
        return needs_trace(run)
    known = run.profile or len(marks(run.trace, MARK)) or len(frames_like(run.trace, COLLECTING))
    return None if known else NO_MARKS


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the marks; pauses that the program asks for with gc.collect() by Python's frames."""
    calls = frames_like(trace, COLLECTING)
    share = trace.share_of(calls)
    if share >= LEAST_SHARE:
        summary = _ASKED.format(count=per_step(trace, len(calls)), share=share)
        evidence = by_frame(trace, calls, _CALL)
        yield Diagnosis(
            ID, _TITLE, summary, share, (_LEAVE_OUT,), evidence, gain=share, gain_basis=_BASIS_ASKED
        )
        return
    pauses = marks(trace, MARK)
    share = trace.share_of(pauses)
    if share >= LEAST_SHARE:
        longest = int(pauses.duration.max()) / 1e6
        summary = _SUMMARY.format(count=per_step(trace, len(pauses)), share=share, longest=longest)
        evidence = by_name(trace, pauses)
        yield Diagnosis(ID, _TITLE, summary, share, _REMEDIES, evidence, gain=share, gain_basis=_BASIS)


DETECTOR = trace_detector(ID, detect, lacks)

"""Python's garbage collector stops the program."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.detect.evidence import by_name
from torchferry.perf.detect.model import Detector, needs_trace
from torchferry.perf.detect.within import marks, per_step
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text

ID = "garbage_collection"
MARK = "torchferry::gc"  # made by `ferry profile`
LEAST_SHARE = 0.01  # of the steps

_TITLE = Text("Python's garbage collector stops the program", "Python 垃圾回收使程序停顿")
_SUMMARY = Text(
    "The collector runs {count:.1f} times per step and takes {share:.1%} of the time; the longest pause is "
    "{longest:.1f} ms.",
    "垃圾回收每步运行 {count:.1f} 次，占时间的 {share:.1%}；最长停顿 {longest:.1f} ms。",
)
_REMEDIES = (
    Text(
        "Call gc.collect() and gc.freeze() before the training loop: what the imports, the model and the data set have "
        "made is not looked at again.",
        "训练循环前调用 gc.collect() 与 gc.freeze()：导入、模型和数据集产生的对象不再被扫描。",
    ),
    Text(
        "Or gc.disable(), and gc.collect() every so many steps, at the same step on all ranks.",
        "或 gc.disable()，并每隔若干步 gc.collect()，各进程在同一步进行。",
    ),
)
_BASIS = Text("the pauses; with a frozen heap nearly all of them go", "停顿时间；冻结后几乎全部消失")
NO_MARKS = Text(
    "pauses of Python's garbage collector (`ferry profile` records them)",
    "Python 垃圾回收的停顿（由 `ferry profile` 记录）",
)


def lacks(run: Run) -> Text | None:
    """Only our own collector marks them; there, no marks means no pauses."""
    if run.trace is None:
        return needs_trace(run)
    return None if run.profile or len(marks(run.trace, MARK)) else NO_MARKS


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the marks."""
    trace = run.trace
    assert trace is not None
    pauses = marks(trace, MARK)
    share = trace.share(trace.moments(pauses).total)
    if share < LEAST_SHARE:
        return
    longest = int(pauses.duration.max()) / 1e6
    yield Diagnosis(
        ID,
        _TITLE,
        _SUMMARY.format(count=per_step(trace, len(pauses)), share=share, longest=longest),
        share,
        _REMEDIES,
        by_name(trace, pauses),
        gain=share,
        gain_basis=_BASIS,
    )


DETECTOR = Detector(ID, lacks, detect)

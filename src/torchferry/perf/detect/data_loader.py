"""The program waits for data, or takes long to take batches over from its workers."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.detect.events import frames_with, lies_in
from torchferry.perf.detect.evidence import names_of
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis, Evidence, TimePart
from torchferry.perf.run import LOADER_MARK, Run, loader_waits, share_without_profiler
from torchferry.text import Text
from torchferry.traces.columns import Columns
from torchferry.traces.model import Trace

ID = "data_loader"
LEAST_SHARE = 0.05  # of the steps; prefetching loaders wait for 1 % and less
MOSTLY = 0.5  # of the loader's time
_IN_PROCESS, _WITH_WORKERS = "SingleProcess", "MultiProcessing"  # in the names of PyTorch's loaders
# What Python sleeps in until a worker, or the thread that pins memory, has something for it.
_SLEEPING = (
    "<built-in method poll of",
    "<built-in method select of",
    "<built-in function select>",
    "<built-in method acquire of",
)

_TITLE = Text("The program waits for data", "程序在等待数据")
_SUMMARY = Text(
    "The data loader takes {share:.1%} of the time of a step; for {idle:.1%} the device is idle.",
    "数据加载占单步时间的 {share:.1%}，其中 {idle:.1%} 设备空闲。",
)
_NO_WORKERS = Text(
    "The loader prepares batches in the training process. Give DataLoader num_workers=4 or more, "
    "persistent_workers=True and pin_memory=True.",
    "数据在训练进程内准备：为 DataLoader 设置 num_workers=4 或更多、persistent_workers=True、"
    "pin_memory=True。",
)
_MORE_WORKERS = Text(
    "The workers are too slow. Raise num_workers (up to the cores of this process) and "
    "prefetch_factor, move heavy transforms to the device or run them once in advance, and check the "
    "disk.",
    "工作进程跟不上：提高 num_workers（不超过本进程可用核数）和 prefetch_factor，"
    "把耗时的变换移到设备上或预先做好，检查磁盘。",
)
_HAND_OVER_TITLE = Text("Receiving batches from the workers takes long", "从工作进程接收批次耗时过长")
_HAND_OVER = Text(
    "The data loader takes {share:.1%} of the time of a step, but the workers keep up: the program "
    "waits for them for {waiting:.1%}; the rest goes into receiving finished batches.",
    "数据加载占单步时间的 {share:.1%}，但工作进程跟得上：等待它们只占 {waiting:.1%}，"
    "其余用于接收已备好的批次。",
)
_FEWER_BATCHES = Text(
    "The cost depends on the number of batches and tensors, not on their size: use larger batches, "
    "fewer tensors per batch (join samples), or pin_memory=True, which receives them in a thread in "
    "advance.",
    "代价来自批次和张量的个数，与大小无关：增大批量，减少每批的张量个数（合并样本），或设置 "
    "pin_memory=True，由线程提前接收。",
)
_IN_MEMORY = Text(
    "Data in memory needs no workers: fetch whole batches by index, dataset[indices], with num_workers=0.",
    "数据已在内存中时不需要工作进程：以 num_workers=0 按下标整批读取 dataset[indices]。",
)
_HOST = Text(
    "`ferry doctor host` checks what else slows data loading down.",
    "`ferry doctor host` 检查其他拖慢加载的因素。",
)
_BASIS = Text(
    "the time for which the program waits and the device is idle; fast enough workers hide all of it",
    "程序等待且设备空闲的时间；工作进程足够快时可全部隐藏",
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By PyTorch's own marks around the loader's __next__."""
    waits = loader_waits(trace)
    waiting = trace.moments(waits).total
    share, idle = trace.share(waiting), trace.share(run.parts[TimePart.LOADER].total)
    if idle < LEAST_SHARE:
        return
    names = names_of(trace, waits.name)
    # Nanoseconds in which the program sleeps until a worker is done; None: it has none, or the trace can't tell.
    waiting_for_workers = None
    if len(trace.python) and all(_WITH_WORKERS in name for name in names):
        asleep = frames_with(trace, *_SLEEPING)
        inside = asleep.take(lies_in(asleep.thread, asleep.start, waits))
        waiting_for_workers = float((trace.moments(inside) & trace.moments(waits)).total)
    if waiting_for_workers is not None and waiting_for_workers < waiting * MOSTLY:
        share = share_without_profiler(run, trace, run.parts[TimePart.LOADER])
        if share < LEAST_SHARE:
            return
        summary = _HAND_OVER.format(share=share, waiting=trace.share(waiting_for_workers))
        remedies = (_FEWER_BATCHES, _IN_MEMORY)
        yield Diagnosis(ID, _HAND_OVER_TITLE, summary, share, remedies, _evidence(trace, waits))
        return
    in_process = any(_IN_PROCESS in name for name in names)
    summary = _SUMMARY.format(share=share, idle=idle)
    remedies = (_NO_WORKERS if in_process else _MORE_WORKERS, _HOST)
    evidence = _evidence(trace, waits)
    yield Diagnosis(ID, _TITLE, summary, share, remedies, evidence, gain=idle, gain_basis=_BASIS)


def _evidence(trace: Trace, waits: Columns) -> tuple[Evidence, ...]:
    longest = int(waits.duration.argmax())
    waiting = trace.moments(waits).total
    return (
        Evidence(
            min(names_of(trace, waits.name)),
            place=trace.places(trace.host_rows(prefix=LOADER_MARK)[[longest]])[0],
            count=len(waits),
            seconds=waiting / 1e9,
            share=trace.share(waiting),
            example=int(waits.start[longest]) / 1e9,
        ),
    )


DETECTOR = trace_detector(ID, detect)

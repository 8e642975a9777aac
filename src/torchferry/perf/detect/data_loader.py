"""The program waits for data."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.detect.model import Detector, needs_trace
from torchferry.perf.model import Diagnosis, Evidence, Part
from torchferry.perf.run import Run, loader_waits
from torchferry.text import Text

ID = "data_loader"
LEAST_SHARE = 0.05  # of the steps; prefetching loaders wait for 1 % and less

_TITLE = Text("The program waits for data", "程序在等待数据")
_SUMMARY = Text(
    "The data loader takes {share:.1%} of the time of a step; for {idle:.1%} the device has nothing else to do.",
    "数据加载占单步时间的 {share:.1%}，其中 {idle:.1%} 设备空闲。",
)
_NO_WORKERS = Text(
    "The loader prepares batches in the training process: give DataLoader num_workers=4 or more, "
    "persistent_workers=True, pin_memory=True.",
    "数据在训练进程内准备：为 DataLoader 设置 num_workers=4 或更多、persistent_workers=True、pin_memory=True。",
)
_MORE_WORKERS = Text(
    "The workers are too slow: raise num_workers (up to the cores of this process) and prefetch_factor, move heavy "
    "transforms to the device or do them once and for all, check the disk.",
    "工作进程跟不上：提高 num_workers（不超过本进程可用核数）和 prefetch_factor，把耗时的变换移到设备上或预先做好，检查磁盘。",
)
_HOST = Text(
    "`ferry doctor host` checks what else slows loading down.", "`ferry doctor host` 检查其他拖慢加载的因素。"
)
_BASIS = Text(
    "the time in which the program waits and the device is idle; workers that keep up hide all of it",
    "程序等待且设备空闲的时间；工作进程足够快时可全部隐藏",
)


def detect(run: Run) -> Iterator[Diagnosis]:
    """By PyTorch's own marks around the loader's __next__."""
    trace = run.trace
    assert trace is not None
    waits = loader_waits(trace)
    waiting = trace.moments(waits).total
    share, idle = trace.share(waiting), trace.share(run.parts[Part.LOADER].total)
    if idle < LEAST_SHARE:
        return
    names = {trace.names[number] for number in set(waits.name.tolist())}
    in_process = any("SingleProcess" in name for name in names)
    longest = int(waits.duration.argmax())
    yield Diagnosis(
        ID,
        _TITLE,
        _SUMMARY.format(share=share, idle=idle),
        share,
        (_NO_WORKERS if in_process else _MORE_WORKERS, _HOST),
        (
            Evidence(
                sorted(names)[0],
                place=trace.places(trace.host_rows(*names)[longest : longest + 1])[0],
                count=len(waits),
                seconds=waiting / 1e9,
                share=share,
                example=int(waits.start[longest]) / 1e9,
            ),
        ),
        gain=idle,
        gain_basis=_BASIS,
    )


DETECTOR = Detector(ID, needs_trace, detect)

"""Checkpoints are written within the steps."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.perf.detect.events import SAVING, events_like, frames_like, per_step
from torchferry.perf.detect.evidence import by_frame
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import Columns, EventKind
from torchferry.traces.model import Trace

ID = "checkpoint_writing"
LEAST_SHARE = 0.03  # of the steps; one checkpoint in some hundred steps costs less

_TITLE = Text("Checkpoints are written in the training loop", "训练循环中写 checkpoint")
_SUMMARY = Text(
    "{count:.1f} checkpoints are written per step, {share:.1%} of the time.",
    "每步写 {count:.1f} 次 checkpoint，占时间的 {share:.1%}。",
)
_SELDOM = Text(
    "Write one only every few steps, minutes or epochs, and keep only the latest.",
    "隔若干步、若干分钟或每个 epoch 再写，只保留最近的几个。",
)
_ASIDE = Text(
    "Copy the state to the host and write it in a thread, or use "
    "torch.distributed.checkpoint.async_save, so that training continues. With several processes, "
    "let only rank 0 write what all of them hold.",
    "先把状态拷贝到主机，再由线程写盘，或使用 torch.distributed.checkpoint.async_save："
    "训练可继续进行。多进程时相同内容只由 rank 0 写。",
)
_BASIS = Text(
    "the time spent writing, if it is done rarely or asynchronously", "写盘所用的时间，若很少写或异步写"
)


def saves(trace: Trace) -> Columns:
    """Calls that write checkpoints: by Python's frames, or else by the program's own marks."""
    if len(trace.python):
        return frames_like(trace, SAVING)
    return events_like(trace, trace.host.where(EventKind.ANNOTATION), SAVING)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By the functions that write them."""
    written = saves(trace)
    share = trace.share_of(written)
    if share >= LEAST_SHARE:
        summary = _SUMMARY.format(count=per_step(trace, len(written)), share=share)
        remedies, evidence = (_SELDOM, _ASIDE), by_frame(trace, written)
        yield Diagnosis(ID, _TITLE, summary, share, remedies, evidence, gain=share, gain_basis=_BASIS)


DETECTOR = trace_detector(ID, detect)

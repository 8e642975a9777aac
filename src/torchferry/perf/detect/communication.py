"""The device waits for other devices: communication that no computation covers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import frames_with, is_on_host, operators_in_window, per_step
from torchferry.perf.detect.evidence import by_name
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis, TimePart
from torchferry.perf.run import Run, communication_calls
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "communication"
LEAST_SHARE = 0.05  # of the steps, uncovered: the last bucket of gradients has nothing left to hide behind
SMALL_MESSAGE = 262_144  # numbers: 1 MiB, below which the links' latency counts for more than their width
MANY_MESSAGES = 8  # per step; DistributedDataParallel makes one of 25 MiB of gradients

_TITLE = Text("The devices wait for each other", "设备之间互相等待")
_SUMMARY = Text(
    "Communication takes {total:.1%} of the time; {covered:.0%} of it overlaps with computation, so "
    "{share:.1%} of the time is pure communication.",
    "通信占时间的 {total:.1%}，其中 {covered:.0%} 被计算掩盖，{share:.1%} 的时间只用于通信。",
)
_UNTIMED = Text(
    "The program sends many small messages in every step. This trace has no device times, so their "
    "cost is unknown.",
    "程序每步发送大量小消息。此 trace 没有设备时间，无法给出其代价。",
)
_OVERLAP = Text(
    "Overlap gradients with the backward pass: DistributedDataParallel with "
    "find_unused_parameters=False and gradient_as_bucket_view=True; try bucket_cap_mb of 10, 25, 50 "
    "and 100.",
    "让梯度在反向过程中传输：DistributedDataParallel 设置 find_unused_parameters=False、"
    "gradient_as_bucket_view=True，并尝试 bucket_cap_mb 为 10、25、50、100。",
)
_LESS = Text(
    "Send less: model.no_sync() while gradients accumulate, gradients in half precision "
    "(register_comm_hook with fp16_compress_hook), a larger batch per device.",
    "减少传输：梯度累积期间使用 model.no_sync()，半精度梯度（register_comm_hook 与 "
    "fp16_compress_hook），增大单卡批量。",
)
_MESSAGES = Text(
    "{count:.0f} messages per step, half of them with {numbers:.0f} numbers or fewer: combine them "
    "(a larger bucket_cap_mb, all_reduce_coalesced, one tensor for several metrics).",
    "每步 {count:.0f} 条消息，半数不超过 {numbers:.0f} 个数：合并传输（增大 bucket_cap_mb、"
    "all_reduce_coalesced、把多个指标放入一个张量）。",
)
_DATA_PARALLEL = Text(
    "nn.DataParallel copies the model in every step: `ferry convert --distributed` writes DistributedDataParallel.",
    "nn.DataParallel 每步都复制模型：`ferry convert --distributed` 可改写为 DistributedDataParallel。",
)
_BASIS = Text(
    "communication that nothing overlaps; all of it, if the backward pass overlaps it",
    "未被掩盖的通信；若能被反向计算掩盖则可全部省去",
)
_REDUCES = re.compile(r"^c10d::(?:allreduce|reduce_scatter|_?allgather)")


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """By its time; where a device could not be traced, by the messages alone: its links are not the host's."""
    calls = trace.of_window(communication_calls(trace))
    if not len(calls):
        return
    if trace.is_host_only and not is_on_host(trace, run.device):
        if (messages := _small_messages(trace)) is not None:
            yield Diagnosis(ID, _TITLE, _UNTIMED, 0.0, (messages,), by_name(trace, calls))
        return
    total, share = trace.share_of(calls), trace.share(run.parts[TimePart.COMMUNICATION].total)
    if share < LEAST_SHARE:
        return
    summary = _SUMMARY.format(total=total, covered=1 - share / total, share=share)
    remedies = [_OVERLAP, _LESS]
    if (messages := _small_messages(trace)) is not None:
        remedies.insert(0, messages)
    if len(frames_with(trace, "torch/nn/parallel/data_parallel.py")):
        remedies.insert(0, _DATA_PARALLEL)
    evidence = by_name(trace, calls)
    yield Diagnosis(ID, _TITLE, summary, share, tuple(remedies), evidence, gain=share, gain_basis=_BASIS)


def _small_messages(trace: Trace) -> Text | None:
    """What to do about them; None: there are not many. The buckets of DistributedDataParallel are messages too."""
    rows = operators_in_window(trace)
    rows = rows[np.isin(trace.host.name[rows], trace.names_like(_REDUCES))]
    signatures = [number for number in trace.host.signature[rows].tolist() if number >= 0]
    sizes = [_elements(trace.signature(number).dims) for number in signatures]
    count = per_step(trace, len(sizes))
    if count < MANY_MESSAGES or float(np.median(sizes)) >= SMALL_MESSAGE:
        return None
    return _MESSAGES.format(count=count, numbers=float(np.median(sizes)))


def _elements(dims: object) -> int:
    """How many numbers a tensor holds, or a list of tensors."""
    if not isinstance(dims, list) or not dims:
        return 0
    if all(isinstance(each, int) for each in dims):
        return int(np.prod(dims, dtype=np.int64))
    return sum(_elements(each) for each in dims)


DETECTOR = trace_detector(ID, detect)

"""The program takes numbers out of tensors one by one, on the host: each costs a call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import is_on_host, operators_in_window, outermost_operators, per_step
from torchferry.perf.detect.evidence import by_name_and_place
from torchferry.perf.detect.model import trace_detector
from torchferry.perf.model import Diagnosis
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.model import Trace

ID = "element_access"
LEAST_SHARE = 0.03  # of the steps, of the calls alone; the loop around them costs as much again
LEAST_PER_STEP = 100.0  # a loss, some metrics and the norms of gradients are fewer
_READS = ("aten::item", "aten::_local_scalar_dense", "aten::unbind", "aten::select")

_TITLE = Text("The program reads tensors number by number", "程序逐个读取张量中的数值")
_SUMMARY = Text(
    "{count:.0f} times per step a single number is read (.item(), float(), a loop over a tensor); the calls themselves take "
    "{share:.1%} of the time.",
    "每步有 {count:.0f} 次读取单个数值（.item()、float()、遍历张量），仅调用就占时间的 {share:.1%}。",
)
_REMEDY = Text(
    "Compute with the whole tensor (sum, mean, comparisons, torch.where); where you need numbers, "
    "read all at once with tensor.tolist(). On an accelerator each .item() also waits for the device.",
    "对整个张量做运算（sum、mean、比较、torch.where）；需要数值时用 tensor.tolist() 一次取出。"
    "在加速器上每次 .item() 还要等待设备。",
)


def detect(run: Run, trace: Trace) -> Iterator[Diagnosis]:
    """Where the host is the device; else it is waiting that costs, which has its own detector."""
    if not is_on_host(trace, run.device):
        return
    rows = operators_in_window(trace)
    reads = rows[np.isin(trace.host.name[rows], trace.name_ids(*_READS))]
    rows = np.unique(outermost_operators(trace, reads))
    rows = rows[np.isin(trace.host.name[rows], trace.name_ids(*_READS))]
    count = per_step(trace, int(np.isin(trace.host.name[rows], trace.name_ids(*_READS[:2])).sum()))
    share = trace.share_of(trace.host.take(rows))
    if count >= LEAST_PER_STEP and share >= LEAST_SHARE:
        summary = _SUMMARY.format(count=count, share=share)
        yield Diagnosis(ID, _TITLE, summary, share, (_REMEDY,), by_name_and_place(trace, rows))


DETECTOR = trace_detector(ID, detect)

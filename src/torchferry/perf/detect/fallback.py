"""Operators that the device lacks are computed on the host."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.detect.evidence import MOST, added_up, described, end_of_calls, names_of
from torchferry.perf.detect.model import Detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.traces.columns import EventKind, Flags, Ints
from torchferry.traces.model import Trace

ID = "fallback"
MARK = "torchferry::fallback "
LEAST_SHARE = (
    0.002  # of the steps: each call also empties the device's queue, which no simulated device shows
)
_TO_HOST = "aten::_to_cpu"  # PyTorch's own way to compute for a device that lacks an operator
_ADVISED = 3  # operators that get a remedy of their own

_TITLE = Text("Operators fall back to the CPU", "算子回退到 CPU")
_SUMMARY = Text(
    "{count} calls of {operators} operators missing on the device run on the CPU; they take "
    "{share:.1%} of the time of a step, and the device waits for each.",
    "设备缺少的 {operators} 种算子有 {count} 次调用在 CPU 上计算，占单步时间的 {share:.1%}，"
    "每次设备都要等待。",
)
_COUNTED = Text(
    "In this run, {count} calls of {operators} operators missing on the device ran on the CPU.",
    "本次运行中，设备缺少的 {operators} 种算子有 {count} 次在 CPU 上计算。",
)
_OPS = Text(
    "`ferry ops --to {vendor} train.py` lists all such operators with replacements; `ferry case` "
    "creates a test of one to send to the vendor.",
    "`ferry ops --to {vendor} train.py` 列出所有这类算子及替代写法；`ferry case` "
    "为单个算子生成可提交给厂商的用例。",
)
_MOVE = Text(
    "Where several of them follow each other, move the tensors to the CPU once, before the first.",
    "若多个这类算子相连，在第一个之前把张量一次移到 CPU。",
)
_NEITHER = Text("a trace, or run.json of `ferry profile`", "trace，或 `ferry profile` 的 run.json")


def lacks(run: Run) -> Text | None:
    """A trace, or what the collector counted, must be there."""
    return None if run.trace is not None or "fallbacks" in run.rank_facts else _NEITHER


def detect(run: Run) -> Iterator[Diagnosis]:
    """By the marks of our collector, or by tensors that an operator itself brings to the host and back."""
    trace = run.trace
    rows = _fallbacks(trace) if trace is not None else np.empty(0, np.int64)
    if trace is None or not len(rows):
        yield from _counted(run)
        return
    calls = trace.host.take(rows)
    share = trace.share_of(calls)
    if share < LEAST_SHARE:
        return
    names = [name.removeprefix(MARK).strip() for name in names_of(trace, calls.name)]
    inputs = [described(trace, _signature(trace, row)) for row in rows.tolist()]
    evidence = added_up(trace, names, trace.places(rows), calls.duration, calls.start, inputs)
    summary = _SUMMARY.format(count=len(rows), operators=len(set(names)), share=share)
    operators = dict.fromkeys(each.what for each in evidence if isinstance(each.what, str))
    yield Diagnosis(ID, _TITLE, summary, share, _remedies(run, list(operators)), evidence)


def _counted(run: Run) -> Iterator[Diagnosis]:
    """What the collector counted where the trace has no marks."""
    counts = run.rank_facts.get("fallbacks")
    if not isinstance(counts, dict) or not counts:
        return
    known = [(str(name), calls) for name, calls in counts.items() if isinstance(calls, int)]
    ordered = sorted(known, key=lambda each: -each[1])
    evidence = tuple(Evidence(name, count=calls) for name, calls in ordered[:MOST])
    summary = _COUNTED.format(count=sum(calls for _, calls in ordered), operators=len(ordered))
    yield Diagnosis(ID, _TITLE, summary, 0.0, _remedies(run, [name for name, _ in ordered]), evidence)


def _fallbacks(trace: Trace) -> Ints:
    """Rows of `host`, the outermost ones."""
    marked = trace.host_rows(prefix=MARK)
    marked = marked[trace.in_window(trace.host.take(marked))]
    if len(marked):
        return trace.host_calls.outermost(marked)
    operators = operators_in_window(trace)
    called = trace.parent[operators[np.isin(trace.host.name[operators], trace.name_ids(_TO_HOST))]]
    rows = np.union1d(called[called >= 0], operators[_goes_and_returns(trace, operators)])
    return trace.host_calls.outermost(rows.astype(np.int64))


def _goes_and_returns(trace: Trace, rows: Ints) -> Flags:
    """Whether an operator of PyTorch's copies from the device and to it, and computes nothing there."""
    work = trace.device
    if not len(work):
        return np.zeros(len(rows), bool)
    to_host = trace.names_that(lambda name: "DtoH" in name)[work.name]
    to_device = trace.names_that(lambda name: "HtoD" in name)[work.name] & ~to_host
    copies = work.kind == EventKind.COPY
    last = end_of_calls(trace, rows)
    counts = []
    for wanted in (
        copies & to_host,
        copies & to_device,
        ~np.isin(work.kind, (EventKind.COPY, EventKind.FILL, EventKind.MOVE)),
    ):
        owned = np.bincount(trace.owner[wanted & (trace.owner >= 0)], minlength=len(trace.host))
        before = np.concatenate([[0], np.cumsum(owned)])
        counts.append(before[last] - before[rows])
    there, back, computed = counts
    is_operator = trace.names_that(lambda name: name.startswith("aten::"))
    found: Flags = (there > 0) & (back > 0) & (computed == 0) & is_operator[trace.host.name[rows]]
    return found


def _signature(trace: Trace, row: int) -> int:
    """The signature of a marked call: the mark lies in the operator, or around it."""
    if int(trace.host.signature[row]) >= 0:
        return int(trace.host.signature[row])
    for near in (int(trace.parent[row]), row + 1):
        if 0 <= near < len(trace.host) and trace.names[int(trace.host.name[near])].startswith("aten::"):
            return int(trace.host.signature[near])
    return -1


def _remedies(run: Run, operators: list[str]) -> tuple[Text, ...]:
    """What vendor data has instead of the first operators, then what holds for all."""
    vendor = run.vendor
    named = _OPS.format(vendor=vendor.name if vendor else "VENDOR")
    if vendor is None:
        return named, _MOVE
    from torchferry.operators.native_functions import operator_facts
    from torchferry.readiness.advice import Adviser
    from torchferry.readiness.judge import vendor_table
    from torchferry.readiness.model import OperatorSite, OperatorSupport, Phase, Remedy, Signature, Use

    adviser = Adviser(vendor, vendor_table(vendor), operator_facts())
    replacements = []
    for operator in operators[:_ADVISED]:
        use = Use(Signature(operator, ()), OperatorSite(Phase.FORWARD), 1, 0.0)
        for advice in adviser.advise(use, OperatorSupport.FALLBACK):
            if advice.remedy in (Remedy.VENDOR_OPERATOR, Remedy.COMPOSITION):
                code = advice.code.strip()
                shown = f": {code}" if code and "\n" not in code else ""
                text = advice.text
                replacements.append(Text(f"{operator}: {text.en}{shown}", f"{operator}：{text.zh}{shown}"))
                break
    return (*replacements, named, _MOVE)


DETECTOR = Detector(ID, lacks, detect)

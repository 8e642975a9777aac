"""Operators meet shapes in step after step that they have not met before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from torchferry.perf.detect.events import operators_in_window
from torchferry.perf.detect.evidence import MOST, work_time
from torchferry.perf.detect.model import NO_SHAPES, Detector
from torchferry.perf.model import Diagnosis, Evidence
from torchferry.perf.run import Run
from torchferry.perf.tables.kernels import KernelTable
from torchferry.text import Text
from torchferry.traces.columns import Flags, Interned, Ints
from torchferry.traces.model import Trace
from torchferry.vendors.host import load_host
from torchferry.vendors.registry import vendor_of_device

ID = "dynamic_shapes"
LEAST_SHARE = 0.05  # of the steps, in operators with new shapes
LEAST_STEPS = 2  # that bring new shapes: a last, smaller batch is one
MOST_OF_STEPS = 0.5
_SHOWN = 3  # shapes of an operator

_TITLE = Text("Shapes change from step to step", "形状逐步变化")
_SUMMARY = Text(
    "In {steps} of {all} steps operators receive shapes that no earlier step had; calls with such "
    "shapes take {share:.1%} of the time.",
    "{all} 步中有 {steps} 步出现之前没有过的形状；这类调用占时间的 {share:.1%}。",
)
_PAD = Text(
    "Pad batches to a few fixed sizes (buckets), crop images to one size, and give DataLoader drop_last=True.",
    "把批次填充到少数固定尺寸（分桶），图像裁剪为同一尺寸，并为 DataLoader 设置 drop_last=True。",
)
_MASK = Text(
    "Replace operations whose result size depends on values (tensor[mask], nonzero, unique) with "
    "torch.where or a multiplication by the mask.",
    "把取决于数值的写法（tensor[mask]、nonzero、unique）换成 torch.where 或与掩码相乘。",
)
_SWITCH = Text(
    "Where shapes must vary, use {statement} ({what}).", "若形状必须变化，请使用 {statement}（{what}）。"
)
_EAGER = Text(
    "whether this device compiles operators for each shape is unknown; new shapes are expensive "
    "under torch.compile and with cudnn.benchmark",
    "该设备是否按形状编译算子未知；使用 torch.compile 或 cudnn.benchmark 时新形状有代价",
)
_SHAPES = Text("shapes: {count}; {shown}{more}", "形状：{count} 种；{shown}{more}")
_NO_STEPS = Text("at least three steps with step marks", "至少三步，且有步的标记")


class _ShapedCalls(NamedTuple):
    steps: int  # all of the run
    total: int  # nanoseconds that shares are of
    step: Ints  # counted from 0
    operator: Ints
    shapes: Ints
    time: Ints
    row: Ints


def lacks(run: Run) -> Text | None:
    """Shapes and enough steps must be there."""
    if run.trace is None:
        return None if run.kernels is not None and len(run.kernels.steps) > LEAST_STEPS else _NO_STEPS
    if not run.trace.has_shapes:
        return NO_SHAPES
    return None if len(run.trace.steps) > LEAST_STEPS else _NO_STEPS


def detect(run: Run) -> Iterator[Diagnosis]:
    """Compares the shapes of a step with those of the steps before: a model's layers differ within a step."""
    calls = _of_table(run.kernels) if run.trace is None else _of_trace(run.trace)
    is_new = _is_new(calls)
    new = is_new & np.isin(calls.operator, _changing(calls, is_new))
    steps = len(np.unique(calls.step[new]))
    share = float(calls.time[new].sum()) / calls.total if calls.total else 0.0
    if steps < LEAST_STEPS or share < LEAST_SHARE:
        return
    switches = _compile_switches(run)
    yield Diagnosis(
        ID,
        _TITLE,
        _SUMMARY.format(steps=steps, all=calls.steps, share=share),
        share,
        (_PAD, _MASK, *switches),
        tuple(_evidence(run, calls, new)),
        gain=None if switches else 0.0,
        gain_basis=None if switches else _EAGER,
    )


def _compile_switches(run: Run) -> list[Text]:
    """What a vendor whose runtime compiles operators for their shapes has against it; empty: it does not compile."""
    vendor = run.vendor or vendor_of_device(run.device)
    if vendor is None:
        return []
    return [
        _SWITCH.format(statement=tuning.option, what=tuning.what)
        for tuning in load_host(Path(vendor.folder)).tuning
        if tuning.option and "compile" in tuning.name
    ]


def _of_trace(trace: Trace) -> _ShapedCalls:
    rows = operators_in_window(trace)
    rows = rows[trace.host.signature[rows] >= 0]
    known = Interned()
    shapes = np.array([known[dims] for dims, *_ in trace.raw_signatures], np.int64)
    step = np.searchsorted(trace.steps.start, trace.host.start[rows], side="right") - 1
    names, shapes = trace.host.name[rows], shapes[trace.host.signature[rows]]
    return _ShapedCalls(
        len(trace.steps), trace.window.total, step, names, shapes, work_time(trace)[rows], rows
    )


def _of_table(table: KernelTable | None) -> _ShapedCalls:
    assert table is not None
    rows = np.flatnonzero(table.step >= 0)
    known = Interned()
    shapes = np.array([known[signature.input_shapes] for signature in table.signatures], np.int64)
    step = np.searchsorted(table.steps, table.step[rows])
    names, shapes = table.type[rows], shapes[table.signature[rows]]
    return _ShapedCalls(len(table.steps), table.whole_time, step, names, shapes, table.duration[rows], rows)


def _is_new(calls: _ShapedCalls) -> Flags:
    """Calls of which it holds: no step before had this operator with these shapes, and there was one."""
    keys = calls.operator * (int(calls.shapes.max(initial=0)) + 1) + calls.shapes
    _, inverse = np.unique(keys, return_inverse=True)
    first = np.full(int(inverse.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, inverse, calls.step)
    found: Flags = (first[inverse] == calls.step) & (calls.step > 0)
    return found


def _changing(calls: _ShapedCalls, is_new: Flags) -> list[int]:
    """The operators that have new shapes in most steps after the first."""
    seen: defaultdict[int, set[int]] = defaultdict(set)
    pairs = np.unique(np.stack([calls.operator[is_new], calls.step[is_new]], axis=1), axis=0)
    for operator, step in pairs.tolist():
        seen[operator].add(step)
    least = max(LEAST_STEPS, MOST_OF_STEPS * (calls.steps - 1))
    return [operator for operator, where in seen.items() if len(where) >= least]


def _evidence(run: Run, calls: _ShapedCalls, new: Flags) -> Iterator[Evidence]:
    """The operators with the most time in new shapes."""
    group = np.unique(calls.operator[new], return_inverse=True)[1]
    time = np.bincount(group, weights=calls.time[new])
    rows = calls.row[new]
    for at in np.argsort(-time, kind="stable")[:MOST].tolist():
        mine = np.flatnonzero(group == at)
        longest = int(rows[mine[np.argmax(calls.time[new][mine])]])
        _, firsts = np.unique(calls.shapes[new][mine], return_index=True)
        name, texts, place, example = _shown(run, rows[mine[np.sort(firsts)]].tolist(), longest)
        yield Evidence(
            name,
            _SHAPES.format(
                count=len(firsts), shown=" | ".join(texts), more=" …" if len(firsts) > _SHOWN else ""
            ),
            place,
            len(mine),
            float(time[at]) / 1e9,
            float(time[at]) / calls.total,
            example,
        )


def _shown(run: Run, rows: list[int], longest: int) -> tuple[str, list[str], str, float | None]:
    trace = run.trace
    if trace is None:
        table = run.kernels
        assert table is not None
        texts = [table.signatures[int(table.signature[row])].input_shapes for row in rows[:_SHOWN]]
        return table.texts[int(table.type[longest])], texts, "", None
    texts = [trace.signature(int(trace.host.signature[row])).shapes_text for row in rows[:_SHOWN]]
    place = trace.places(np.array([longest]))[0]
    return trace.names[int(trace.host.name[longest])], texts, place, int(trace.host.start[longest]) / 1e9


DETECTOR = Detector(ID, lacks, detect)

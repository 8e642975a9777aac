"""What a check found, as text with the verdict first, and as JSON. No torch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from torchferry.accuracy.overflow.launching import Checked
from torchferry.accuracy.overflow.model import (
    GIVEN,
    LOWEST,
    TABLE,
    CallFigures,
    OverflowEvent,
    OverflowFindings,
    OverflowKind,
    Standing,
    TensorFigures,
)
from torchferry.readiness.model import NOTES
from torchferry.report.commands import ferry_command
from torchferry.report.json import head, plain
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

FORMAT = "torchferry-overflow"
_MOST_TENSORS = 6
_NOT_FINITE = ("nan", "inf", "-inf")

_FOUND = {
    OverflowKind.NAN: Text("overflow: {operator} produces NaN", "溢出：{operator} 产生 NaN"),
    OverflowKind.INFINITE: Text(
        "overflow: {operator} produces infinities from finite inputs",
        "溢出：{operator} 由有限的输入产生无穷大",
    ),
    OverflowKind.HALF: Text(
        "overflow: {operator} produces values that float16 can't hold",
        "溢出：{operator} 产生 float16 无法表示的值",
    ),
}
_GIVEN = Text(
    "overflow: {operator} receives NaN that none of the checked operators produced: it comes from "
    "data, initialization, compiled code or another process; --whole checks from `import torch` on",
    "溢出：{operator} 的输入已含 NaN，且不是由已检查的算子产生：它来自数据、初始化、"
    "编译的代码或其他进程；--whole 从 `import torch` 起检查",
)
_NONE = Text(
    "no overflow: {operators} operator calls were checked on {device}, steps: {steps}",
    "未发现溢出：在 {device} 上检查了 {steps} 步中的 {operators} 个算子",
)
_INTERRUPTED = Text(
    "no overflow until the run was stopped: {operators} operator calls were checked on {device}, "
    "complete steps: {steps}",
    "运行终止前未发现溢出：在 {device} 上检查了 {steps} 个完整步中的 {operators} 个算子",
)
_FAILED = Text(
    "the program failed with exit code {code} (see its output); only the calls before that were checked",
    "程序以退出码 {code} 失败（见其输出）：只检查了此前的调用",
)
_WHERE = Text("step {step}, {phase}", "第 {step} 步，{phase}")
_PHASES = {
    "forward": Text("forward pass", "前向"),
    "backward": Text("backward pass", "反向"),
    "optimizer": Text("optimizer", "优化器"),
}
_MODULE = Text("module {module}", "模块 {module}")
_NODE = Text("backward node {node}", "反向节点 {node}")
_RANK = Text("rank {rank} of {world} was first", "{world} 个进程中 rank {rank} 最先溢出")
_OTHER_RANK = Text("rank {rank}: {operator}, {where}", "rank {rank}：{operator}，{where}")
_SCALED = Text(
    "the loss was scaled by {scale:g}, and the GradScaler could not remove the overflow",
    "损失被放大 {scale:g} 倍，而 GradScaler 未能消除该溢出",
)
_BEFORE = Text("the last {count} operators before it:", "此前的 {count} 个算子：")
_SAVED = Text("its inputs before the call: {file}", "其调用前的输入：{file}")
_UNSAVED = Text(
    "not saved because they have been overwritten: {names}", "以下输入此间已被覆盖，未保存：{names}"
)
_LOOK = Text("what is in it: {command}", "查看其内容：{command}")
_CASE = Text(
    "run only this operator, on a device against the CPU: {command}", "在设备上与 CPU 对比该单算子：{command}"
)
_CASE_WRITTEN = Text("the same as a test: {file}", "同样内容的测试：{file}")
_SKIPPED = Text(
    "{count} steps overflowed in scaled gradients and were skipped by the GradScaler, last at scale "
    "{scale:g} in {operator}; this is normal while it searches for a scale",
    "{count} 步的放大梯度溢出并被 GradScaler 跳过，最后一次缩放系数为 {scale:g}，算子 {operator}："
    "这是其寻找系数时的正常现象",
)
_INTENDED = {
    TABLE: Text(
        "considered intended: {operator} at {place} turns zeros of a table or mask without gradients "
        "into infinities",
        "视为有意：{place} 处的 {operator} 在不带梯度的表或掩码中由零产生无穷大",
    ),
    LOWEST: Text(
        "considered intended: {operator} at {place} adds a mask with the lowest number of {dtype}",
        "视为有意：{place} 处的 {operator} 加上了 {dtype} 的最小值掩码",
    ),
}
_LARGEST = Text(
    "closest to the limit of float16 (65504): {value:g}, {operator}, {where}",
    "最接近 float16 上限（65504）的值：{value:g}，{operator}，{where}",
)
_UNDERFLOW = Text(
    "would become zero in float16: {share:.1%} of the values of {operator}, {where}",
    "在 float16 中会变为零：{operator} 的 {share:.1%} 的值，{where}",
)
_MORE = Text(
    "{count} more overflows, first: {operator}, {where}",
    "另有 {count} 处溢出，首个：{operator}，{where}",
)


def to_text(checked: Checked, language: Language, vendor: str, case: str = "") -> str:
    """The findings as text. `vendor` is whose device the case would be for, `case` the test's file if one was written."""
    lines = [
        line.in_language(language) if isinstance(line, Text) else line
        for line in _lines(checked, vendor, case)
    ]
    return "\n".join(map(one_line, lines)) + "\n"


def to_json(checked: Checked, vendor: str, case: str = "") -> str:
    """The findings as JSON."""
    first = checked.first
    data = {
        **head(FORMAT),
        "program": checked.program,
        "overflow": first is not None,
        "rank": None if first is None else first[0].rank,
        "first": None if first is None else plain(first[1], _NOT_FINITE),
        "case": case_command(first[1], vendor, case) if first and first[1].record and vendor else None,
        "case_file": case or None,
        "exit_code": checked.ending.exit_code,
        "processes": plain(checked.processes, _NOT_FINITE),
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def case_command(event: OverflowEvent, vendor: str, written: str = "") -> str:
    """What makes a test of the operator alone, in the place of one that is written already."""
    record = os.path.relpath(event.record)
    replaced = ["--force"] if written else []
    return ferry_command("case", event.call.operator, "--to", vendor, "--from", record, *replaced)


def _lines(checked: Checked, vendor: str, case: str) -> Iterator[Text | str]:
    first = checked.first
    if first is None:
        steps = min((each.steps for each in checked.processes), default=0)
        operators = sum(each.operators for each in checked.processes)
        device = next((each.device for each in checked.processes), "")
        said = _INTERRUPTED if checked.failed or checked.ending.signal else _NONE
        yield said.format(operators=f"{operators:,}", steps=steps, device=device)
    else:
        yield from _found(checked, *first, vendor, case)
    if checked.failed:
        yield _FAILED.format(code=checked.ending.exit_code)
    for findings in checked.processes:
        yield from _notes(findings)


def _found(
    checked: Checked, findings: OverflowFindings, event: OverflowEvent, vendor: str, case: str
) -> Iterator[Text | str]:
    verdict, here = headline(event), where(event.call)
    yield Text(f"{verdict.en} ({here.en})", f"{verdict.zh}（{here.zh}）")
    if findings.world > 1:
        yield _RANK.format(rank=findings.rank, world=findings.world)
    for figures in (*event.call.inputs[:_MOST_TENSORS], *event.call.outputs[:_MOST_TENSORS]):
        shape = "x".join(map(str, figures.shape)) or "scalar"
        yield f"  {figures.name}  {figures.dtype} {shape}  {_range(figures)}".rstrip()
    if event.scale is not None:
        yield _SCALED.format(scale=event.scale)
    if event.before:
        yield _BEFORE.format(count=len(event.before))
        for seen in event.before:
            place = " ".join(filter(None, (seen.phase, seen.module, seen.place)))
            ranges = f"{_range_of(seen.inputs)} -> {_range_of(seen.outputs)}"
            yield f"  #{seen.number} {seen.operator}  {place}  {ranges}"
    if event.record:
        yield _SAVED.format(file=os.path.relpath(event.record))
        if event.unsaved:
            yield _UNSAVED.format(names=", ".join(event.unsaved))
        look = ferry_command("record", "info", os.path.relpath(event.record))
        yield (
            _CASE.format(command=case_command(event, vendor, case)) if vendor else _LOOK.format(command=look)
        )
    if case:
        yield _CASE_WRITTEN.format(file=case)
    for other in checked.processes:
        if other is not findings and other.first is not None:
            call = other.first.call
            yield _OTHER_RANK.format(rank=other.rank, operator=call.operator, where=where(call))


def _notes(findings: OverflowFindings) -> Iterator[Text]:
    found = [event for event in findings.events if event.standing is Standing.FOUND]
    if len(found) > 1:
        call = found[1].call
        yield _MORE.format(count=len(found) - 1, operator=call.operator, where=where(call))
    skipped = [event for event in findings.events if event.standing is Standing.SKIPPED]
    if skipped:
        last = skipped[-1]
        yield _SKIPPED.format(
            count=max(len(skipped), findings.skipped_steps),
            scale=last.scale or 0.0,
            operator=last.call.operator,
        )
    for event in findings.events:
        if event.standing is Standing.INTENDED:
            yield _INTENDED[event.why].format(
                operator=event.call.operator, place=event.call.place, dtype=event.call.outputs[0].dtype
            )
    if findings.largest is not None:
        call = findings.largest.call
        yield _LARGEST.format(value=findings.largest.value, operator=call.operator, where=where(call))
    for each in findings.underflow:
        yield _UNDERFLOW.format(share=each.share, operator=each.call.operator, where=where(each.call))
    for note in findings.notes:
        yield NOTES.get(note, Text(note, note))


def headline(event: OverflowEvent) -> Text:
    """What an operator has made, or was given."""
    said = _GIVEN if event.why == GIVEN else _FOUND[event.kind]
    return said.format(operator=event.call.operator)


def where(call: CallFigures) -> Text:
    """step 3, backward pass, module layer1.0.conv1, train.py:31."""
    phase = _PHASES.get(call.phase, Text(call.phase, call.phase))
    parts = [_WHERE.format(step=call.step, phase=phase)]
    if call.module:
        parts.append(_MODULE.format(module=call.module))
    if call.node:
        parts.append(_NODE.format(node=call.node))
    if call.place:
        parts.append(Text(call.place, call.place))
    return Text(", ".join(part.en for part in parts), "，".join(part.zh for part in parts))


def _range_of(tensors: Sequence[TensorFigures]) -> str:
    parts = [_range(each) for each in tensors if each.statistics is not None and each.statistics.count]
    return ", ".join(parts[:3]) + (", ..." if len(parts) > 3 else "") if parts else "()"


def _range(figures: TensorFigures) -> str:
    """[-1.2, 3.4] rms 0.5, 3 NaN."""
    statistics = figures.statistics
    if statistics is None:
        return ""
    parts = []
    if statistics.count > statistics.nans + statistics.infinities:
        parts.append(f"[{statistics.minimum:.4g}, {statistics.maximum:.4g}] rms {statistics.rms:.4g}")
    if statistics.nans:
        parts.append(f"{statistics.nans} of {statistics.count} NaN")
    if statistics.infinities:
        parts.append(f"{statistics.infinities} of {statistics.count} infinite")
    return ", ".join(parts)

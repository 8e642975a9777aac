"""What `ferry export` prints: a page for people, JSON for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torchferry.checkpoint.report import amount
from torchferry.export.model import Check, Exported
from torchferry.export.offline import CHIP, lacks_chip
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.offline import OfflineTable

_WROTE = Text(
    "wrote {path}: opset {opset}, {size}, {nodes} nodes; by {way}",
    "已写入 {path}：opset {opset}，{size}，{nodes} 个节点；方式：{way}",
)
_GOOD = Text(
    "onnx's checker takes it, and onnxruntime computes what PyTorch does: largest difference {error:.2g} in {count} runs",
    "通过 onnx 检查，onnxruntime 与 PyTorch 结果一致：{count} 次运行中最大差异 {error:.2g}",
)
_BAD = Text(
    "onnxruntime does not compute what PyTorch does: {output} differs by {error:.2g}{problem}",
    "onnxruntime 与 PyTorch 结果不一致：{output} 相差 {error:.2g}{problem}",
)
_ALL_TAKEN = Text(
    "{tool} of {vendor} takes all its {count} operators", "{vendor} 的 {tool} 支持全部 {count} 种算子"
)
_NOT_TAKEN = Text(
    "not in the list of operators that {tool} of {vendor} takes: {names}; newer releases may have them",
    "不在 {vendor} 的 {tool} 所支持算子列表中：{names}；新版本可能已支持",
)
_NO_LIST = Text(
    "which operators of ONNX {vendor} takes is unknown here", "尚不清楚 {vendor} 支持哪些 ONNX 算子"
)
_NEXT = Text(
    "then, where {vendor}'s toolkit is: {command}", "然后在装有 {vendor} 工具包的机器上执行：{command}"
)
_CHIP = Text("{chip} is the chip's name: {how}", "{chip} 为芯片名称：{how}")
_NO_TOOL = Text(
    "how {vendor} turns ONNX into its own format is unknown here", "尚不清楚 {vendor} 如何转换 ONNX 模型"
)
_CONVERTED = Text("{tool} has made its own format of it", "已由 {tool} 转换为厂商格式")
_RANGE = Text("{vendor} takes opsets {least} to {most}", "{vendor} 支持 opset {least} 至 {most}")


def page_of(
    exported: Exported, vendor: Vendor | None, table: OfflineTable, command: Sequence[str], *, was_run: bool
) -> Page:
    """What there is to say about an export."""
    nodes = sum(exported.operators.values())
    said = [
        (
            _WROTE.format(
                path=exported.output,
                opset=exported.opset,
                size=amount(exported.bytes),
                nodes=nodes,
                way=exported.way,
            ),
            "bold",
        ),
        _check_words(exported),
    ]
    if vendor:
        said += _vendor_words(exported, vendor, table, command, was_run)
    tables = (_ports(exported), _checks(exported), _operators(exported, table))
    return Page(Text("Export to ONNX", "导出 ONNX"), tuple(said), tables, exported.notes)


def _check_words(exported: Exported) -> tuple[Text, str]:
    bad = next((check for check in exported.checks if not check.is_good), None)
    if bad is not None:
        problem = f" ({bad.problem})" if bad.problem else ""
        return _BAD.format(output=bad.output, error=bad.error, problem=problem), "bold red"
    runs = len({json.dumps(dict(check.sizes)) for check in exported.checks})
    return _GOOD.format(
        error=max((check.error for check in exported.checks), default=0.0), count=runs
    ), "green"


def _vendor_words(
    exported: Exported, vendor: Vendor, table: OfflineTable, command: Sequence[str], was_run: bool
) -> list[tuple[Text, str]]:
    said: list[tuple[Text, str]] = []
    least, most = table.opset_min, table.opset_max
    if least is not None and most is not None and not least <= exported.opset <= most:
        said.append((_RANGE.format(vendor=vendor.name, least=least, most=most), "yellow"))
    lacking = [name for name in exported.operators if name not in table.operators]
    tool = table.conversion.tool if table.conversion else ""
    if not table.operators:
        said.append((_NO_LIST.format(vendor=vendor.name), ""))
    elif lacking:
        said.append((_NOT_TAKEN.format(tool=tool, vendor=vendor.name, names=", ".join(lacking)), "yellow"))
    else:
        said.append(
            (_ALL_TAKEN.format(tool=tool, vendor=vendor.name, count=len(exported.operators)), "green")
        )
    if table.conversion is None:
        said.append((_NO_TOOL.format(vendor=vendor.name), ""))
    elif was_run:
        said.append((_CONVERTED.format(tool=tool), "green"))
    else:
        said.append((_NEXT.format(vendor=vendor.name, command=shlex.join(command)), ""))
        if lacks_chip(command) and table.conversion.chip.en:
            said.append((_CHIP.format(chip=CHIP, how=table.conversion.chip), ""))
    return said


def _ports(exported: Exported) -> Table:
    columns = (
        Column(Text("", "")),
        Column(Text("name", "名称"), is_whole=True),
        Column(Text("shape and dtype", "形状与类型")),
    )
    return Table(
        Text("Inputs and outputs", "输入与输出"),
        columns,
        tuple(
            (Cell(kind), Cell(port.name, is_code=True), Cell(port.described))
            for kind, ports in (("in", exported.inputs), ("out", exported.outputs))
            for port in ports
        ),
    )


def _checks(exported: Exported) -> Table:
    columns = (
        Column(Text("sizes", "尺寸")),
        Column(Text("output", "输出")),
        Column(Text("largest difference", "最大差异"), is_number=True),
        Column(Text("largest value", "最大值"), is_number=True),
    )
    return Table(
        Text("onnxruntime against PyTorch", "onnxruntime 与 PyTorch 对比"),
        columns,
        tuple(map(_check_row, exported.checks)),
    )


def _check_row(check: Check) -> tuple[Cell, ...]:
    sizes = ", ".join(f"{symbol}={size}" for symbol, size in check.sizes.items()) or "as given"
    style = "" if check.is_good else "red"
    return (
        Cell(sizes),
        Cell(check.output, is_code=True),
        Cell(f"{check.error:.2g}", style),
        Cell(f"{check.scale:.3g}"),
    )


def _operators(exported: Exported, table: OfflineTable) -> Table:
    columns = (
        Column(Text("operator", "算子")),
        Column(Text("nodes", "节点"), is_number=True),
        Column(Text("vendor", "厂商")),
    )
    rows = tuple(
        (Cell(name, is_code=True), Cell(str(count)), Cell(_standing(name, table)))
        for name, count in exported.operators.items()
    )
    return Table(Text("Operators of ONNX", "ONNX 算子"), columns, rows)


def _standing(name: str, table: OfflineTable) -> str:
    if not table.operators:
        return "?"
    return "yes" if name in table.operators else "not listed"


def to_json(exported: Exported, vendor: Vendor | None, table: OfflineTable, command: Sequence[str]) -> str:
    """Everything, for programs."""
    data: dict[str, Any] = asdict(exported)
    data["notes"] = [note.en for note in exported.notes]
    data["checks"] = [
        {**asdict(check), "error": check.error if check.error < float("inf") else None}
        for check in exported.checks
    ]
    data["is_good"] = exported.is_good
    data["vendor"] = vendor.name if vendor else None
    known = bool(table.operators)
    data["not_listed"] = (
        [name for name in exported.operators if name not in table.operators] if known else None
    )
    data["command"] = list(command) or None
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

"""What `ferry export` prints: a page for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from torchferry import units
from torchferry.onnx_export.model import Check, Exported, OutputVerdict, sizes_in_words
from torchferry.onnx_export.offline import CHIP, lacks_chip
from torchferry.report.commands import command_line
from torchferry.report.formats import Options, Reports
from torchferry.report.json import head
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.offline import OfflineTable

_WROTE = Text(
    "wrote {path}: opset {opset}, {size}, {nodes} nodes; by {way}",
    "已写入 {path}：opset {opset}，{size}，{nodes} 个节点；方式：{way}",
)
_GOOD = Text(
    "accepted by onnx's checker; onnxruntime computes the same as PyTorch: largest difference "
    "{error:.2g} ({relative:.2g} of the largest value) in {count} runs",
    "通过 onnx 检查，onnxruntime 与 PyTorch 结果一致：{count} 次运行中最大差异 "
    "{error:.2g}（为最大值的 {relative:.2g}）",
)
_NOT_COMPARED = Text(
    "accepted by onnx's checker; no result could be compared with PyTorch's",
    "通过 onnx 检查；没有可与 PyTorch 对比的结果",
)
_VERDICTS = {
    OutputVerdict.FAILED: Text("the ONNX model does not run like the PyTorch model: {problem}",
"ONNX 模型无法像 PyTorch 模型一样运行：{problem}"),
    OutputVerdict.DIFFERENT: Text(
        "onnxruntime does not compute the same as PyTorch: {output} differs by {error:.2g} "
"({relative:.2g} of its largest value)",
"onnxruntime 与 PyTorch 结果不一致：{output} 相差 {error:.2g}（为其最大值的 {relative:.2g}）",
    ),
    OutputVerdict.RANDOM: Text(
        "can't be compared: PyTorch gives another {output} each time for the same input; something "
"random is active in inference, such as F.dropout(x) without training=self.training",
"无法对比：相同输入下 PyTorch 每次给出不同的 {output}；推理时仍有随机操作，例如 F.dropout(x) "
"缺少 training=self.training",
    ),
    OutputVerdict.CHAOTIC: Text(
        "can't be judged: {output} differs by {error:.2g} ({relative:.2g} of its largest value), but the "
"model amplifies every rounding error so much that a mistake could hide in it; try trained "
"weights, or realistic inputs",
"无法判断：{output} 相差 {error:.2g}（为其最大值的 {relative:.2g}），但模型会急剧放大舍入误差，"
"错误可能被掩盖；请使用训练后的权重或接近真实的输入",
    ),
    OutputVerdict.ROUNDING: Text(
        "{output} differs by {error:.2g} ({relative:.2g} of its largest value), which is "
"single-precision rounding, not a mistake of the export",
"{output} 相差 {error:.2g}（为其最大值的 {relative:.2g}），属于单精度舍入误差，并非导出错误",
    ),
    OutputVerdict.EMPTY: Text(
        "{output} is 0 or NaN everywhere, so a comparison is meaningless; give a checkpoint, or "
"realistic inputs",
"{output} 全为 0 或 NaN，对比没有意义；请提供 checkpoint 或接近真实的输入",
    ),
}  # fmt: skip
_OFF = Text(
    "{said}: compared with double precision, onnxruntime is off by {onnx:.2g}, PyTorch by {pytorch:.2g}",
    "{said}：与双精度结果相比，onnxruntime 偏差 {onnx:.2g}，PyTorch 偏差 {pytorch:.2g}",
)
_VERDICT_WORDS = {
    OutputVerdict.SAME: Text("same", "一致"),
    OutputVerdict.ROUNDING: Text("rounding", "舍入误差"),
    OutputVerdict.EMPTY: Text("meaningless", "无意义"),
    OutputVerdict.DIFFERENT: Text("different", "不一致"),
    OutputVerdict.CHAOTIC: Text("can't be judged", "无法判断"),
    OutputVerdict.RANDOM: Text("random", "随机"),
    OutputVerdict.FAILED: Text("failed", "失败"),
}
_AS_GIVEN = Text("as given", "如命令所给")
_IN, _OUT = Text("in", "输入"), Text("out", "输出")
_LISTED, _NOT_LISTED = Text("yes", "支持"), Text("not listed", "未列出")
_ALL_TAKEN = Text(
    "all its {count} operators are supported by {tool} of {vendor}; attributes and dtypes were not compared",
    "全部 {count} 种算子均在 {vendor} 的 {tool} 支持列表中；未比较属性与数据类型",
)
_NOT_TAKEN = Text(
    "not in the list of operators that {tool} of {vendor} supports: {names}; newer releases may support them",
    "不在 {vendor} 的 {tool} 所支持算子列表中：{names}；新版本可能已支持",
)
_NO_LIST = Text(
    "the ONNX operators that {vendor} supports are unknown", "尚不清楚 {vendor} 支持哪些 ONNX 算子"
)
_NEXT = Text(
    "then, on a machine with {vendor}'s toolkit: {command}",
    "然后在装有 {vendor} 工具包的机器上执行：{command}",
)
_CHIP = Text("{chip} is the chip's name: {how}", "{chip} 为芯片名称：{how}")
_NO_TOOL = Text(
    "how {vendor} converts ONNX to its own format is unknown", "尚不清楚 {vendor} 如何转换 ONNX 模型"
)
_CONVERTED = Text("converted to its own format by {tool}", "已由 {tool} 转换为厂商格式")
_RANGE = Text("{vendor} supports opsets {least} to {most}", "{vendor} 支持 opset {least} 至 {most}")


@dataclass(frozen=True)
class ExportReport:
    """An export, and what its vendor makes of it."""

    exported: Exported
    vendor: Vendor | None
    table: OfflineTable
    command: Sequence[str]  # of the vendor's converter; none is known: empty
    was_run: bool

    @property
    def not_listed(self) -> list[str]:
        """Operators that the vendor's table does not have."""
        return [name for name in self.exported.operators if name not in self.table.operators]


REPORTS: Reports[ExportReport] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")


def page_of(report: ExportReport, options: Options) -> Page:
    """What there is to say about an export."""
    exported = report.exported
    size, nodes = units.size(exported.bytes), sum(exported.operators.values())
    wrote = _WROTE.format(
        path=exported.output, opset=exported.opset, size=size, nodes=nodes, way=exported.way
    )
    said = [(wrote, "bold"), *_check_words(exported)]
    if report.vendor:
        said += _vendor_words(report, report.vendor.name)
    tables = (_ports(exported), _checks(exported), _operators(exported, report.table))
    return Page(Text("Export to ONNX", "导出 ONNX"), tuple(said), tables, exported.notes)


def _check_words(exported: Exported) -> Iterator[tuple[Text, str]]:
    """The worst finding first, each sort of it once; that all is well only where it is."""
    compared = [check for check in exported.checks if check.verdict is not OutputVerdict.EMPTY]
    if exported.is_good and compared:
        runs = len({json.dumps(dict(check.sizes)) for check in compared})
        error, relative = max(check.error for check in compared), max(check.relative for check in compared)
        yield _GOOD.format(error=error, relative=relative, count=runs), "green"
    elif exported.is_good:
        yield _NOT_COMPARED, "yellow"
    for verdict, words in _VERDICTS.items():
        found = [check for check in exported.checks if check.verdict is verdict]
        if found:
            worst = max(found, key=lambda check: check.relative)
            said = words.format(
                output=worst.output, error=worst.error, relative=worst.relative, problem=worst.problem
            )
            if worst.onnx_off is not None and worst.pytorch_off is not None:
                said = _OFF.format(said=said, onnx=worst.onnx_off, pytorch=worst.pytorch_off)
            yield said, "yellow" if worst.is_good else "bold red"


def _vendor_words(report: ExportReport, vendor: str) -> Iterator[tuple[Text, str]]:
    exported, table, command = report.exported, report.table, report.command
    least, most = table.opset_min, table.opset_max
    if least is not None and most is not None and not least <= exported.opset <= most:
        yield _RANGE.format(vendor=vendor, least=least, most=most), "yellow"
    if not table.operators:
        yield _NO_LIST.format(vendor=vendor), ""
    elif report.not_listed:
        names = ", ".join(report.not_listed)
        yield _NOT_TAKEN.format(tool=table.tool, vendor=vendor, names=names), "yellow"
    else:
        yield _ALL_TAKEN.format(tool=table.tool, vendor=vendor, count=len(exported.operators)), "green"
    if not table.has_tool:
        yield _NO_TOOL.format(vendor=vendor), ""
    elif report.was_run:
        yield _CONVERTED.format(tool=table.tool), "green"
    else:
        yield _NEXT.format(vendor=vendor, command=command_line(*command)), ""
        if lacks_chip(command) and table.chip.en:
            yield _CHIP.format(chip=CHIP, how=table.chip), ""


def _ports(exported: Exported) -> Table:
    columns = (
        Column(Text("", "")),
        Column(Text("name", "名称"), is_whole=True),
        Column(Text("shape and dtype", "形状与类型")),
    )
    rows = tuple(
        (Cell(kind), Cell(port.name, is_code=True), Cell(port.described))
        for kind, ports in ((_IN, exported.inputs), (_OUT, exported.outputs))
        for port in ports
    )
    return Table(Text("Inputs and outputs", "输入与输出"), columns, rows)


def _checks(exported: Exported) -> Table:
    columns = (
        Column(Text("sizes", "尺寸")),
        Column(Text("output", "输出")),
        Column(Text("largest difference", "最大差异"), is_number=True),
        Column(Text("largest value", "最大值"), is_number=True),
        Column(Text("of it", "占比"), is_number=True),
        Column(Text("verdict", "结论")),
    )
    title = Text("onnxruntime compared with PyTorch", "onnxruntime 与 PyTorch 对比")
    return Table(title, columns, tuple(map(_check_row, exported.checks)))


def _check_row(check: Check) -> tuple[Cell, ...]:
    style = "" if check.is_good else "red"
    return (
        Cell(sizes_in_words(check.sizes) or _AS_GIVEN),
        Cell(check.output, is_code=True),
        Cell(f"{check.error:.2g}", style),
        Cell(f"{check.scale:.3g}"),
        Cell(f"{check.relative:.2g}", style),
        Cell(_VERDICT_WORDS[check.verdict], style),
    )


def _operators(exported: Exported, table: OfflineTable) -> Table:
    columns = (
        Column(Text("operator", "算子")),
        Column(Text("nodes", "节点"), is_number=True),
        Column(Text("vendor", "厂商")),
    )

    def standing(name: str) -> str | Text:
        return (_LISTED if name in table.operators else _NOT_LISTED) if table.operators else "?"

    rows = tuple(
        (Cell(name, is_code=True), Cell(str(count)), Cell(standing(name)))
        for name, count in exported.operators.items()
    )
    return Table(Text("ONNX operators", "ONNX 算子"), columns, rows)


def to_json(report: ExportReport, options: Options) -> str:
    """The export as JSON."""
    exported, vendor = report.exported, report.vendor
    data = {**head("torchferry-export"), **asdict(exported)}
    data["notes"] = [note.en for note in exported.notes]
    data["checks"] = [
        {
            **asdict(check),
            "error": _finite(check.error),
            "relative": _finite(check.relative),
            "is_good": check.is_good,
        }
        for check in exported.checks
    ]
    data["is_good"] = exported.is_good
    data["vendor"] = vendor.name if vendor else None
    data["not_listed"] = report.not_listed if report.table.operators else None
    data["command"] = list(report.command) or None
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if number < float("inf") else None

"""`ferry export`: an ONNX model of a checkpoint, compared with PyTorch, and the vendor's offline conversion."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Group, Parser, WrongValue
from torchferry.cli.output import show, warn_of_pickle
from torchferry.errors import InputError
from torchferry.report.progress import beside_program
from torchferry.text import Text

ABOUT = About(
    Text(
        "Fills the model with the checkpoint, exports it, runs onnxruntime on the same inputs and compares the results "
        "with PyTorch's. With --to the opset fits the vendor's converter, whose command is printed or run.",
        "将检查点载入模型并导出，用相同输入运行 onnxruntime，与 PyTorch 的结果比较。指定 --to 时 opset 适配厂商的转换工具，"
        "并输出或运行其命令。",
    ),
    (
        Example(
            "ferry export model.pth --model net.py:build --input 1x3x224x224 -o model.onnx",
            Text("Export and compare", "导出并比较"),
        ),
        Example(
            "ferry export model.pth --model net.py:build --input 1x3x224x224 --dynamic batch --to ascend --chip "
            "Ascend310P3 -o model.onnx",
            Text(
                "Leave the batch size free, and print the command of the vendor's converter",
                "批大小可变，并输出厂商转换工具的命令",
            ),
        ),
    ),
    usage=("[CHECKPOINT] --model FACTORY --input SHAPE ... -o FILE.onnx [OPTIONS]",),
    exit_codes=(
        (
            "1",
            Text(
                "The model was written, but onnxruntime does not compute what PyTorch does",
                "模型已写出，但 onnxruntime 的计算结果与 PyTorch 不一致",
            ),
        ),
    ),
    page="how-to/export.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry export`."""
    text = Text(
        "Checkpoint: .pth, .pt, .pth.tar, .safetensors ... (default: the weights that the factory gives the model)",
        "检查点：.pth、.pt、.pth.tar、.safetensors 等（默认：FACTORY 给模型的权重）",
    )
    parser.add("checkpoint", nargs="?", default="", metavar="CHECKPOINT", text=text)
    text = Text("The ONNX model to write", "要写出的 ONNX 模型")
    parser.add("-o", "--output", type=Path, required=True, metavar="FILE.onnx", text=text)
    options.add_format(
        parser, text=Text("Format of the printed summary (default: text)", "输出摘要的格式（默认：text）")
    )
    options.add_quiet(parser)
    options.add_language(parser)
    group = parser.group(Text("The model", "模型"))
    shapes = "1x3x224x224, ids=1x128:int64:ints(0,30000), batch.mask=1x128:bool"
    options.add_model(group, shapes, required=True)
    group = parser.group(Text("The weights", "权重"))
    text = Text(
        "Use this part of the checkpoint, for example state_dict or ema.model",
        "使用检查点的这一部分，例如 state_dict 或 ema.model",
    )
    options.add_part(group, text)
    text = Text(
        "Go on where names or shapes don't match; missing weights stay as the factory made them",
        "名称或形状不匹配时继续；缺少的权重保持 FACTORY 生成的值",
    )
    options.add_switch(group, "--lenient", text)
    options.add_allow_pickle(group)
    _add_onnx(parser.group(Text("The ONNX model", "ONNX 模型")))
    group = parser.group(Text("The vendor", "厂商"))
    text = Text(
        "Vendor whose converter takes the model, by name or device type",
        "由哪个厂商的转换工具接收模型，可用名称或设备类型",
    )
    options.add_to(group, text)
    options.add_vendor_path(group)
    text = Text(
        "Chip for the vendor's converter, for example Ascend310P3", "厂商转换工具的目标芯片，例如 Ascend310P3"
    )
    group.add("--chip", default="", metavar="NAME", text=text)
    options.add_switch(
        group,
        "--run",
        Text("Run the vendor's converter if it is on this machine", "本机装有厂商转换工具时运行它"),
    )


def _add_onnx(group: Group) -> None:
    text = Text(
        "Opset version (default: what the vendor's converter takes, else 13)",
        "opset 版本（默认：厂商转换工具支持的版本，否则为 13）",
    )
    group.add("--opset", type=int, metavar="N", text=text)
    text = Text("Names of the inputs, separated by commas", "输入的名称，以逗号分隔")
    group.add("--input-names", type=_names, default=(), metavar="NAMES", text=text)
    text = Text("Names of the outputs, separated by commas", "输出的名称，以逗号分隔")
    group.add("--output-names", type=_names, default=(), metavar="NAMES", text=text)
    text = Text(
        "A size that stays variable: `batch`, the first of every input, or INPUT:AXIS=NAME, for example ids:1=length",
        "保持可变的尺寸：`batch`（每个输入的第一维），或 INPUT:AXIS=NAME，例如 ids:1=length",
    )
    options.add_repeatable(group, "--dynamic", "AXIS", text)
    text = Text(
        "Sizes to test where the first size is variable, separated by commas (default: 1,4)",
        "第一维可变时测试的大小，以逗号分隔（默认：1,4）",
    )
    group.add("--batches", type=_numbers, default=(1, 4), metavar="SIZES", text=text)
    options.add_switch(
        group,
        "--simplify",
        Text("Fold constants and remove nodes without effect", "折叠常量并删除无作用的节点"),
    )
    text = Text(
        "Largest difference to PyTorch, absolute and relative to the largest value; larger ones are judged against "
        "double precision (default: 1e-4)",
        "与 PyTorch 的最大差异（绝对值及相对于最大值）；超出部分以双精度为准判断（默认：1e-4）",
    )
    group.add("--tolerance", type=float, default=1e-4, metavar="X", text=text)
    options.add_force(group)


_NO_NAMES = Text(
    "'{text}' is not a list of different names (letters, digits and . / - _)",
    "'{text}' 不是互不相同的名称列表（字母、数字和 . / - _）",
)
_NO_SIZES = Text("'{text}' is not a list of numbers above 0", "'{text}' 不是大于 0 的整数列表")


def _names(text: str) -> tuple[str, ...]:
    """Without what separates names and sizes in the commands of vendors' tools."""
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) != len(names) or not all(re.fullmatch(r"[\w./-]+", name) for name in names):
        raise WrongValue(_NO_NAMES.format(text=text))
    return names


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and int(word) > 0 for word in words):
        raise WrongValue(_NO_SIZES.format(text=text))
    return tuple(map(int, words))


_EXPORTING = Text("exporting and checking", "正在导出并检查")


def run(args: argparse.Namespace) -> int:
    """Export, report; the answer is an exit code."""
    from torchferry.onnx_export.launching import check_output, export
    from torchferry.onnx_export.model import DEFAULT_OPSET, ExportRequest
    from torchferry.onnx_export.offline import check_tool, command_for, results_of, run_tool
    from torchferry.onnx_export.report import REPORTS, ExportReport
    from torchferry.readiness.models.request import ModelRequest
    from torchferry.vendors.offline import OfflineTable, load_offline

    vendor = options.vendor_of(args)
    table = load_offline(Path(vendor.folder)) if vendor else OfflineTable()
    if args.run and not table.has_tool:
        unknown = Text(f"--run: the converter of {args.to} is unknown", f"--run：{args.to} 的转换工具未知")
        raise InputError(
            unknown if args.to else Text("--run needs a vendor; add --to", "--run 需要厂商；请加 --to")
        )
    check_output(args.output, args.checkpoint, args.force)
    if args.allow_pickle:
        warn_of_pickle()
    if args.run and table.has_tool:
        check_tool(table, args.chip)
    request = ExportRequest(
        ModelRequest(args.model, tuple(args.input), args.init),
        str(args.output),
        args.opset or table.opset or DEFAULT_OPSET,
        checkpoint=os.fspath(args.checkpoint),
        only=args.only,
        lenient=args.lenient,
        allow_pickle=args.allow_pickle,
        input_names=args.input_names,
        output_names=args.output_names,
        dynamic=tuple(args.dynamic),
        batches=args.batches,
        simplify=args.simplify,
        replace=args.force,
        tolerance=args.tolerance,
    )
    with beside_program(_EXPORTING, args.quiet, options.language_of(args)):
        exported = export(request)
    command = command_for(table, exported, args.chip) if table.has_tool else []
    if args.run and table.has_tool and exported.is_good:
        run_tool(table, command, results_of(table, exported))
    report = ExportReport(exported, vendor, table, command, args.run and exported.is_good)
    show(REPORTS, report, args)
    return int(not exported.is_good)

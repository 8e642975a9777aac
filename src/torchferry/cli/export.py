"""Make an ONNX model of a checkpoint, hold it against PyTorch, and name or run the vendor's offline conversion."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import show
from torchferry.errors import InputError

_EPILOG = """exit codes: 0 fine; 1 written, but onnxruntime does not compute what PyTorch does; 2 bad usage or bad input, nothing
was written"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry export`."""
    parser.usage = "ferry export [CHECKPOINT] --model FACTORY --input SHAPE [...] -o FILE.onnx [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "checkpoint",
        nargs="?",
        default="",
        metavar="CHECKPOINT",
        help=".pth, .pt, .pth.tar, .safetensors ... (default: the weights that the factory gives the model)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE.onnx", help="the ONNX model to write"
    )
    group = parser.add_argument_group("the model")
    shapes = "1x3x224x224, ids=1x128:int64:ints(0,30000), batch.mask=1x128:bool"
    options.add_model(group, shapes, required=True)
    group = parser.add_argument_group("the weights")
    options.add_part(group, "the part of the checkpoint to take, as state_dict or ema.model")
    options.add_switch(
        group,
        "--lenient",
        "go on where names or shapes don't fit: what is missing stays as the factory made it",
    )
    options.add_allow_pickle(group)
    group = parser.add_argument_group("the ONNX model")
    group.add_argument(
        "--opset", type=int, metavar="N", help="(default: what the vendor's converter takes, else 13)"
    )
    group.add_argument(
        "--input-names", type=_names, default=(), metavar="NAMES", help="of the inputs, with commas"
    )
    group.add_argument(
        "--output-names", type=_names, default=(), metavar="NAMES", help="of the outputs, with commas"
    )
    options.add_repeatable(
        group,
        "--dynamic",
        "AXIS",
        "a size that stays free: `batch`, the first of every input, or INPUT:AXIS=NAME, as ids:1=length",
    )
    group.add_argument(
        "--batches",
        type=_numbers,
        default=(1, 4),
        metavar="SIZES",
        help="to try where the first size is free, with commas (default: 1,4)",
    )
    options.add_switch(group, "--simplify", "fold constants and take out nodes without effect")
    group.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        metavar="X",
        help="the largest difference to PyTorch, and as a part of the largest value; what is beyond is judged against double "
        "precision (default: 1e-4)",
    )
    options.add_switch(group, "--force", "replace a file that is there already")
    group = parser.add_argument_group("the vendor")
    options.add_to(group, "a name that `ferry vendors` lists: for its opset and its converter")
    options.add_vendor_path(parser)
    group.add_argument(
        "--chip", default="", metavar="NAME", help="for the vendor's converter, as Ascend310P3"
    )
    options.add_switch(group, "--run", "call the vendor's converter, if it is on this machine")
    options.add_json(parser)
    options.add_language(parser)


def _names(text: str) -> tuple[str, ...]:
    """Without what separates names and sizes in the commands of vendors' tools."""
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) != len(names) or not all(re.fullmatch(r"[\w./-]+", name) for name in names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of different names (letters, digits and . / - _)"
        )
    return names


def _numbers(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and int(word) > 0 for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers above 0")
    return tuple(map(int, words))


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
        of = f"the converter of {args.to} is unknown here" if args.to else "there is no vendor; add --to"
        raise InputError(f"--run: {of}")
    check_output(args.output, args.checkpoint, args.force)
    if args.allow_pickle:
        print("ferry: --allow-pickle: code that the checkpoint names may run", file=sys.stderr)
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
    exported = export(request)
    command = command_for(table, exported, args.chip) if table.has_tool else []
    if args.run and table.has_tool and exported.is_good:
        run_tool(table, command, results_of(table, exported))
    report = ExportReport(exported, vendor, table, command, args.run and exported.is_good)
    show(REPORTS, report, args)
    return int(not exported.is_good)

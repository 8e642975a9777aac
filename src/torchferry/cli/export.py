"""Make an ONNX model of a checkpoint, hold it against PyTorch, and name or run the vendor's offline conversion."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from torchferry.cli import export_options
from torchferry.errors import InputError, OutputError
from torchferry.text import user_language

add_arguments = export_options.add_arguments


def run(args: argparse.Namespace) -> int:
    """Export, report; the answer is an exit code."""
    from torchferry.cli.ending import reader_may_leave
    from torchferry.export.launching import export
    from torchferry.export.offline import check_tool, command_for, results_of, run_tool
    from torchferry.export.report import page_of, to_json
    from torchferry.export.request import DEFAULT_OPSET, ExportRequest
    from torchferry.ops.models.request import ModelRequest
    from torchferry.report.page import print_page
    from torchferry.report.safe import printable
    from torchferry.vendors.offline import OfflineTable, load_offline
    from torchferry.vendors.registry import get_vendor

    vendor = get_vendor(args.to, args.vendor_path) if args.to else None
    table = load_offline(Path(vendor.folder)) if vendor else OfflineTable()
    _check(args, has_tool=table.conversion is not None)
    if args.run and table.conversion:
        check_tool(table.conversion, args.chip)
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
    command = command_for(table.conversion, exported, args.chip) if table.conversion else []
    if args.run and table.conversion and exported.is_good:
        run_tool(table.conversion, command, results_of(table.conversion, exported))
    with reader_may_leave():
        if args.json:
            sys.stdout.write(printable(to_json(exported, vendor, table, command)))
        else:
            language = args.lang or user_language()
            was_run = args.run and exported.is_good
            print_page(page_of(exported, vendor, table, command, language, was_run=was_run), language)
    return int(not exported.is_good)


def _check(args: argparse.Namespace, has_tool: bool) -> None:
    if args.run and not has_tool:
        of = f"the converter of {args.to} is unknown here" if args.to else "there is no vendor; add --to"
        raise InputError(f"--run: {of}")
    if args.output.exists() and not args.output.is_file():
        raise OutputError(f"{args.output}: not a file; choose another name")
    if args.checkpoint and os.path.realpath(args.checkpoint) == os.path.realpath(args.output):
        raise OutputError(f"{args.output}: that is the checkpoint itself; choose another name")
    if args.output.exists() and not args.force:
        raise OutputError(f"{args.output}: there already; choose another name, or add --force to replace it")
    if args.allow_pickle:
        print("ferry: --allow-pickle: code that the checkpoint names may run", file=sys.stderr)

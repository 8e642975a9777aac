"""`ferry replay`: every operator of a recording once more, alone, on another device, with the inputs of the recording."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.made import MadeFile, add_summary_format, tell_made
from torchferry.cli.output import need, say
from torchferry.cli.program import say_if_simulated
from torchferry.errors import InputError, RunError
from torchferry.report.commands import next_step
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.units import size
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.accuracy.replay.launching import ReplayOutcome
    from torchferry.launch.place import Place

DEFAULT_OUTPUT = "replay.h5"


ABOUT = About(
    Text(
        "Calls every operator with the inputs that it had in the recording, so that an error of one does not reach the "
        "next. Calls keep their numbers: `ferry compare FILE RECORD` compares the two recordings.",
        "用记录中的输入调用每个算子，因此一个算子的误差不会传到下一个。调用编号保持不变：`ferry compare FILE RECORD` 比较两份记录。",
    ),
    (
        Example(
            "ferry replay gpu.h5 --to ascend -o npu.h5", Text("On a vendor's device", "在厂商设备上重放")
        ),
        Example(
            "ferry replay gpu.h5 --device cpu --op '*softmax*'",
            Text("Some operators, on the CPU", "在 CPU 上重放部分算子"),
        ),
    ),
    usage=("RECORD (--to VENDOR [--sim | --emulate] | --device DEVICE) [-o FILE] [OPTIONS]",),
    exit_codes=(
        (
            "3",
            Text(
                "Some operators failed on the device; the others were recorded",
                "部分算子在设备上失败，其余已记录",
            ),
        ),
    ),
    page="how-to/accuracy.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry replay`."""
    text = Text(
        "Recording written by `ferry record`; gpu.h5 also stands for gpu.rank0.h5, gpu.rank1.h5 ...",
        "`ferry record` 写出的记录；gpu.h5 也代表 gpu.rank0.h5、gpu.rank1.h5 等",
    )
    parser.add("record", type=Path, metavar="RECORD", text=text)
    text = Text(
        "The new recording; one of an earlier run is replaced (default: {name})",
        "新的记录；先前运行的记录会被替换（默认：{name}）",
    )
    options.add_output(parser, DEFAULT_OUTPUT, text.format(name=DEFAULT_OUTPUT))
    where = parser.group(Text("Where the operators run", "算子在哪里运行"))
    options.add_vendor_device(parser, where)
    text = Text(
        "Use a device that this PyTorch has: cpu, cuda, cuda:1, xpu",
        "使用本机 PyTorch 自带的设备：cpu、cuda、cuda:1、xpu",
    )
    where.add("--device", metavar="DEVICE", text=text)
    options.add_selection(parser.group(Text("Which operators", "算子范围")))
    add_summary_format(parser)
    options.add_quiet(parser)
    options.add_language(parser)


_COMMAND = "ferry replay"
_SHOWN = 20  # calls that failed

_WRITTEN = Text(
    "{file}: {calls} calls, {nbytes}{failed}{left}", "{file}：{calls} 次调用，{nbytes}{failed}{left}"
)
_FAILED = Text(", {count} failed", "，{count} 次失败")
_LEFT = Text(", {count} can't be made alone", "，{count} 次无法单独执行")
_LEFT_LINE = Text(
    "call {number}, {operator}{module}: {reason}", "调用 {number}，{operator}{module}：{reason}"
)
_IN_MODULE = Text(" in {module}", "（{module}）")
_MORE = Text("... and {count} more", "……另有 {count} 个")
_FELL_BACK = Text(
    "computed on the CPU, because the device has no kernel: {operators}",
    "设备没有 kernel、在 CPU 上计算：{operators}",
)


def run(args: argparse.Namespace) -> int:
    """Replay all ranks; the answer is an exit code."""
    from torchferry.accuracy.record.outputs import file_of
    from torchferry.accuracy.record.settings import Selection
    from torchferry.accuracy.replay.launching import records_to_replay, replay_record

    place = _place(args)
    need("torch", "torch")
    records = records_to_replay(args.record, args.output)
    selection = Selection(tuple(args.modules), tuple(args.operators), tuple(args.phases))
    code, files = 0, []
    for path, rank, world in records:
        output = file_of(args.output.absolute(), rank, world)
        outcome = replay_record(path, output, place, selection, shows_progress=not args.quiet)
        if not outcome.calls and not outcome.left:
            raise InputError(
                Text(
                    f"{path}: has no call that --in-module, --op and --phase select",
                    f"{path}：没有 --in-module、--op 和 --phase 选中的调用",
                )
            )
        say(args, _COMMAND, *_told(output, outcome))
        files.append(MadeFile(str(output), rank, outcome.calls, is_complete=not outcome.problem))
        if any(each.is_failure for each in outcome.left):
            code = 3
    say(args, _COMMAND, next_step("compare", args.output, args.record))
    return tell_made(args, "replay", code, files, vendor=place.vendor_name, device=place.kind.value)


def _place(args: argparse.Namespace) -> Place:
    from torchferry.accuracy.record.launching import build_for
    from torchferry.launch import plugin
    from torchferry.launch.place import DeviceKind, Place

    if bool(args.to) == bool(args.device):
        raise RunError(
            Text(
                "on which device? give one of --to VENDOR and --device DEVICE",
                "在哪种设备上？请给出 --to VENDOR 或 --device DEVICE 之一",
            )
        )
    if args.device:
        if args.sim or args.emulate:
            option = "--sim" if args.sim else "--emulate"
            raise RunError(
                Text(
                    f"{option} needs a device; name it with --to VENDOR",
                    f"{option}：针对哪种设备？请用 --to VENDOR 指定",
                )
            )
        return Place(DeviceKind.AS_IS, as_is=args.device)
    vendor = get_vendor(args.to, args.vendor_path)
    paths = options.vendor_paths(args)
    place = plugin.place_of(vendor, args.sim, args.emulate, converted=True, vendor_paths=paths, devices=1)
    say_if_simulated(args, _COMMAND, place)
    build_for(place, args.quiet)
    return place


def _told(output: Path, outcome: ReplayOutcome) -> Iterator[Text]:
    failed = [each for each in outcome.left if each.is_failure]
    rest = [each for each in outcome.left if not each.is_failure]
    yield _WRITTEN.format(
        file=one_line(os.path.relpath(output)),
        calls=f"{outcome.calls:,}",
        nbytes=size(outcome.nbytes),
        failed=_FAILED.format(count=len(failed)) if failed else "",
        left=_LEFT.format(count=len(rest)) if rest else "",
    )
    for each in (failed + rest)[:_SHOWN]:
        module = _IN_MODULE.format(module=one_line(each.module)) if each.module else ""
        operator, reason = one_line(each.operator), one_line(each.reason)
        yield _LEFT_LINE.format(number=each.number, operator=operator, module=module, reason=reason)
    if len(outcome.left) > _SHOWN:
        yield _MORE.format(count=len(outcome.left) - _SHOWN)
    if outcome.fallen_back:
        yield _FELL_BACK.format(operators=", ".join(outcome.fallen_back))

"""`ferry overflow`: the first operator of a program that makes infinities or NaN of finite inputs, and its data."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import exit_code, say, write
from torchferry.cli.program import USAGE, add_place, add_program, place_of, program_of
from torchferry.errors import FerryError
from torchferry.report.progress import beside_program
from torchferry.text import NOTHING, Text

DEFAULT_OUTPUT = "overflow.h5"
_LAST = 20


ABOUT = About(
    Text(
        "Checks the results of every operator while the program runs, stops at the first one that turns finite inputs "
        "into infinities or NaN, and keeps its inputs. An infinity that the program asks for, such as a mask with -inf, "
        "is none of them; neither is a step that a GradScaler skips. torch.compile is switched off.",
        "在程序运行时检查每个算子的结果，遇到第一个由有限输入产生无穷大或 NaN 的算子时停止，并保存其输入。程序有意使用的无穷大"
        "（如 -inf 掩码）以及 GradScaler 跳过的步不算在内。torch.compile 会被关闭。",
    ),
    (
        Example("ferry overflow train.py", Text("Check the first step", "检查第一步")),
        Example(
            "ferry overflow --steps 100 --fp16 train.py",
            Text("Find what would overflow in float16", "找出在 float16 中会溢出的算子"),
        ),
        Example(
            "ferry overflow --to ascend -o overflow.h5 train.py",
            Text("Keep the inputs and write a test of the operator", "保存输入，并编写该算子的测试"),
        ),
    ),
    usage=(USAGE,),
    exit_codes=(
        ("1", Text("An overflow was found", "发现溢出")),
        ("3", Text("The program failed before its end, without an overflow", "程序中途失败，未发现溢出")),
    ),
    page="how-to/overflow.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry overflow`."""
    add_program(parser)
    group = parser.group(Text("What is checked", "检查范围"))
    text = Text(
        "Stop the program after N steps, not counting those that a GradScaler skips; `all` runs it to its end (default: 1)",
        "运行 N 步后停止程序，不计 GradScaler 跳过的步；`all` 表示运行到结束（默认：1）",
    )
    options.add_steps(group, text)
    text = Text(
        "Also find what would overflow in float16 (larger than 65504) in a program that uses a wider dtype, and count "
        "what would become zero",
        "对使用更宽数据类型的程序，同时找出在 float16 中会溢出（大于 65504）的结果，并统计会变为零的值",
    )
    group.add("--fp16", dest="half", action="store_true", text=text)
    text = Text(
        "Also stop at overflows that a GradScaler handles by skipping the step, and at infinities that look intended",
        "遇到 GradScaler 会跳过的溢出和看似有意的无穷大时也停止",
    )
    group.add("--every-infinity", old=("--all", "--strict"), dest="strict", action="store_true", text=text)
    text = Text(
        "Check from `import torch` on, including set-up: for programs that call no module, or whose data has NaN "
        "(default: from the first call of a module with parameters)",
        "从 `import torch` 起检查，包括初始化：用于不调用模块或数据含 NaN 的程序（默认：从首次调用带参数的模块起）",
    )
    options.add_switch(group, "--whole", text)
    text = Text(
        "Let the program go on after the first overflow, and note the others too",
        "首次溢出后继续运行程序，并记录其余溢出",
    )
    options.add_switch(group, "--keep-going", text)
    group = parser.group(options.REPORTS)
    text = Text(
        "Number of operators before the overflow that are listed, with figures of their tensors (default: {count})",
        "列出溢出之前的算子数及其张量的统计值（默认：{count}）",
    ).format(count=_LAST)
    group.add("--last", type=options.at_least_one, default=_LAST, metavar="N", text=text)
    text = Text(
        "Recording of the operator's inputs before the call, written if there is an overflow (default: {name}); named "
        "here, and with --to, a test of the operator is written beside it. Several processes write FILE.rank0.h5 ...",
        "溢出时写出的记录，含该算子调用前的输入（默认：{name}）；在此指定文件名并使用 --to 时，还会在旁边写出该算子的测试。"
        "多进程时写出 FILE.rank0.h5 等",
    ).format(name=DEFAULT_OUTPUT)
    options.add_output(group, None, text)
    options.add_format(group, options.SUMMARY_FORMATS)
    add_place(parser)


_COMMAND = "ferry overflow"


_INTERRUPTED = Text("interrupted; what was found until then is above", "已中断；到此为止的发现见上方")
_CHECKING = Text("checking every operator", "正在检查每个算子")


def run(args: argparse.Namespace) -> int:
    """Check a program; the answer is an exit code."""
    from torchferry.accuracy.overflow.launching import run_checked
    from torchferry.accuracy.overflow.report import to_json, to_text
    from torchferry.accuracy.record.launching import build_for, check_output
    from torchferry.accuracy.record.outputs import noted
    from torchferry.accuracy.record.settings import OverflowSettings
    from torchferry.launch.supervise import stop_if_told

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    output = Path(args.output or DEFAULT_OUTPUT).absolute()
    for earlier in check_output(output):  # it would be taken for the result of this run
        Path(earlier).unlink(missing_ok=True)
    settings = OverflowSettings(
        str(output),
        steps=None,
        whole=args.whole,
        keep_going=args.keep_going,
        seed=args.seed,
        updates=args.steps,
        last=args.last,
        half=args.half,
        strict=args.strict,
    )
    say(args, _COMMAND, *noted(filter(None, [build_for(place, args.quiet)])))
    with beside_program(_CHECKING, args.quiet, options.language_of(args)):
        checked = run_checked(program, settings, place, args.timeout)
    event = None if checked.first is None else checked.first[1]
    is_case_wanted = event is not None and event.record and args.output is not None and args.to
    case = _written_case(args, event.record, event.call.operator) if event and is_case_wanted else ""
    if checked.processes:
        vendor, language = args.to or "", options.language_of(args)
        is_json = args.format == "json"
        write(to_json(checked, vendor, case) if is_json else to_text(checked, language, vendor, case))
    stop_if_told(checked.ending, _INTERRUPTED if checked.processes else NOTHING)
    return exit_code(is_found=event is not None, is_partial=bool(checked.failed))


def _written_case(args: argparse.Namespace, record: str, operator: str) -> str:
    """The file of a test of the operator, "" if none can be made."""
    from torchferry.accuracy.model import group_name
    from torchferry.cli.main import run_command

    file = Path(record).with_name(f"test_{group_name(operator)}.py")
    words = ["--to", args.to, "--from", record, "--no-run", "--force", "--quiet", "-o", str(file)]
    words += [word for path in args.vendor_path for word in ("--vendor-path", str(path))]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run_command("case", [operator, *words])
    except FerryError as error:
        print(f"{_COMMAND}: no test was written: {error.shown}", file=sys.stderr)
        return ""
    return os.path.relpath(file)

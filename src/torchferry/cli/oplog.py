"""`ferry oplog`: the host logs of a vendor's runtime: operators with their shapes, and compiles after the warm-up."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import check_reports, deliver, exit_code
from torchferry.cli.paths import expanded
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

ABOUT = About(
    Text(
        "Lists the operators that a runtime has logged on the host, with their shapes, and those that were compiled "
        "after the warm-up, which slow down training.",
        "列出运行时在主机日志中记录的算子及其形状，以及预热之后仍被编译、从而拖慢训练的算子。",
    ),
    (
        Example("ferry oplog logs/", Text("Read a folder of logs", "读取日志文件夹")),
        Example(
            "ferry oplog logs/ --warmup-seconds 60 --check",
            Text(
                "Fail if an operator was compiled after the first minute",
                "第一分钟之后仍有算子编译时以失败结束",
            ),
        ),
    ),
    exit_codes=(
        (
            "1",
            Text(
                "With --check: operators were compiled after the warm-up",
                "使用 --check 时：预热之后有算子被编译",
            ),
        ),
        ("2", Text("No log, or no line about operators in it", "没有日志，或日志中没有算子信息")),
        (
            "3",
            Text(
                "Some files could not be read, and nothing was found in the others",
                "部分文件无法读取，其余未发现问题",
            ),
        ),
    ),
    page="how-to/oplog.md",
)


_READING = Text("reading logs", "正在读取日志")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry oplog`."""
    text = Text(
        "Logs of one run, also .gz, or folders of logs; logs of the devices in them are skipped",
        "一次运行的日志（可为 .gz）或日志文件夹；其中的设备日志会被跳过",
    )
    parser.add("logs", nargs="+", type=Path, metavar="LOG", text=text)
    text = Text(
        "Vendor whose logs they are (default: the only one whose logs are supported)",
        "日志属于哪个厂商（默认：唯一支持日志读取的厂商）",
    )
    options.add_to(parser, text)
    options.add_vendor_path(parser)
    warm_up = parser.group(Text("The warm-up", "预热")).either()
    text = Text(
        "End of the warm-up as a time of the log: 10:11:12 or 2024-05-06-10:11:12",
        "预热结束的日志时间：10:11:12 或 2024-05-06-10:11:12",
    )
    warm_up.add("--warmup-until", old=("--after",), dest="after", default="", metavar="TIME", text=text)
    text = Text(
        "Length of a process's warm-up, from its first operator on", "每个进程的预热时长，从其第一个算子算起"
    )
    warm_up.add(
        "--warmup-seconds",
        old=("--warmup",),
        dest="warmup",
        type=options.number_from_zero(math.inf, Text("a number of seconds", "秒数")),
        metavar="SECONDS",
        text=text,
    )
    text = Text(
        "Count compiles from the N-th shape of an operator on, at any time",
        "从算子的第 N 个形状起统计编译，不论时间",
    )
    warm_up.add("--shapes", type=options.whole_number(2), default=0, metavar="N", text=text)
    group = parser.group(options.REPORTS)
    options.add_format(group)
    options.add_outputs(group)
    text = Text(
        "Also write each operator with its parameters, in the form of the OP_INFO summary of the vendor's guide",
        "同时写出每个算子及其参数，格式与厂商指南的 OP_INFO 汇总相同",
    )
    group.add("--op-info", old=("--summary",), type=Path, metavar="FILE", text=text)
    options.add_verbose(group)
    options.add_check(group, Text("operators were compiled after the warm-up", "预热之后有算子被编译"))
    options.add_quiet(group)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Read, report; the answer is an exit code."""
    from torchferry.perf.oplog.reading import WarmUp, host_log_of, read_oplog
    from torchferry.perf.oplog.report import REPORTS, to_summary
    from torchferry.report.formats import write_file

    check_reports(REPORTS, args.output)
    named = options.vendor_of(args)
    vendor, forms = host_log_of(named.name if named else None, args.vendor_path)
    warm_up = WarmUp(args.after, args.warmup, args.shapes)
    with long_task(_READING, args.quiet, Counted.BYTES, options.language_of(args)) as progress:
        log = read_oplog(expanded([*map(str, args.logs)]), vendor, forms, warm_up, progress)
    if args.op_info is not None:
        write_file(args.op_info, to_summary(log))
    deliver(REPORTS, log, args)
    return exit_code(is_found=args.check and bool(log.recompiles), is_partial=bool(log.unread))

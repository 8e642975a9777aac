"""`ferry explain`: what the errors in a log mean, which came first, why, and what to do."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import check_reports, deliver, exit_code
from torchferry.cli.paths import expanded
from torchferry.errors import InputError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.explanation.model import Explanation
    from torchferry.explanation.rules import RuleBook

ABOUT = About(
    Text(
        "Finds the errors of PyTorch, CUDA and the vendors' runtimes in logs, separates the first cause from its "
        "consequences, and says what to do.",
        "在日志中查找 PyTorch、CUDA 和各厂商运行时的错误，区分首要原因与后续影响，并给出处理方法。",
    ),
    (
        Example(
            "ferry explain logs/",
            Text("Explain the logs of all ranks of a run", "解释一次运行中所有 rank 的日志"),
        ),
        Example("ferry explain --code 107002", Text("Explain an error code", "解释一个错误码")),
        Example(
            "torchrun train.py 2>&1 | ferry explain --pass-through",
            Text("Explain a run when it ends, and show its output", "显示运行输出，并在结束时解释错误"),
        ),
    ),
    usage=("[LOG ...] [OPTIONS]", "MESSAGE [OPTIONS]", "--code CODE [OPTIONS]", "--list [OPTIONS]"),
    exit_codes=(
        ("1", Text("With --check: an error was found", "使用 --check 时：发现错误")),
        (
            "3",
            Text(
                "Some logs could not be read completely, and no error was found in the others",
                "部分日志无法完整读取，其余未发现错误",
            ),
        ),
    ),
    page="how-to/explain.md",
)


_READING = Text("reading logs", "正在读取日志")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry explain`."""
    text = Text(
        "Logs of one run, also .gz, .bz2 or .xz; folders of logs; - for standard input (the default); or a message in "
        "quotation marks",
        "一次运行的日志，可为 .gz、.bz2 或 .xz；日志文件夹；- 表示标准输入（默认）；或引号括起的错误信息",
    )
    parser.add("logs", nargs="*", metavar="LOG", text=text)
    parser.add(
        "--code",
        metavar="CODE",
        text=Text("Explain an error code, such as 107002 or EI0006", "解释一个错误码，例如 107002 或 EI0006"),
    )
    options.add_switch(parser, "--list", Text("List all rules", "列出所有规则"))
    text = Text(
        "Use the rules of this vendor, and those for CUDA and PyTorch (default: of all vendors)",
        "使用该厂商的规则以及 CUDA 和 PyTorch 的规则（默认：所有厂商）",
    )
    options.add_to(parser, text)
    text = Text(
        "Pass standard input on to standard output as it comes; the report goes to standard error",
        "将标准输入实时转到标准输出；报告写到标准错误",
    )
    options.add_switch(parser, "--pass-through", text, old=("--tee",))
    options.add_vendor_path(parser)
    group = parser.group(options.REPORTS)
    options.add_format(group)
    options.add_outputs(group)
    options.add_verbose(group)
    options.add_check(group, Text("an error was found", "发现错误"))
    options.add_quiet(group)
    options.add_language(parser)


_PIPE = "-"


def run(args: argparse.Namespace) -> int:
    """Explain logs, a message or a code, or list the rules; the answer is an exit code."""
    from torchferry.explanation.explaining import explain_code
    from torchferry.explanation.report import CODES, REPORTS, RULES
    from torchferry.explanation.rules import rule_book

    asked = [args.code is not None, args.list, bool(args.logs)]
    if sum(asked) > 1:
        raise InputError(
            Text(
                "LOG, --code and --list ask for different things; leave all but one out",
                "LOG、--code 和 --list 用途不同；请只保留一个",
            )
        )
    if args.pass_through and any(asked) and args.logs != [_PIPE]:
        raise InputError(
            Text(
                "--pass-through passes standard input on; leave LOG, --code and --list out",
                "--pass-through 转发标准输入；请去掉 LOG、--code 和 --list",
            )
        )
    check_reports(CODES if args.code is not None else RULES if args.list else REPORTS, args.output)
    book = rule_book([args.to] if args.to else (), args.vendor_path)
    if args.list:
        deliver(RULES, book.patterns, args)
        return 0
    if args.code is not None:
        findings = explain_code(args.code, book)
        if not findings:
            raise InputError(
                Text(
                    f"{args.code}: unknown error code; give the whole message instead",
                    f"{args.code}：未知的错误码；请改为给出完整的错误信息",
                )
            )
        deliver(CODES, findings, args)
        return 0
    explanation = _explanation(args, book)
    deliver(REPORTS, explanation, args, sys.stderr if args.pass_through else None)
    is_partial = bool(explanation.unread) or any(log.damage for log in explanation.logs)
    return exit_code(is_found=args.check and explanation.cause is not None, is_partial=is_partial)


def _explanation(args: argparse.Namespace, book: RuleBook) -> Explanation:
    from torchferry.explanation.explaining import explain_logs, explain_stream, explain_text

    if not args.logs and (sys.stdin is None or sys.stdin.isatty()):
        raise InputError(
            Text(
                "nothing to explain; give a log, a folder of logs, or a message in quotation marks",
                "要解释什么？请给出日志、日志文件夹，或引号括起的错误信息",
            )
        )
    if args.logs in ([], [_PIPE]) and sys.stdin is not None:
        copy = sys.stdout.buffer if args.pass_through else None
        try:
            return explain_stream(sys.stdin.buffer, "<stdin>", book, copy)  # type: ignore[arg-type]
        except OSError as error:
            raise InputError(
                Text(
                    f"standard input can't be read: {error.strerror or error}; give a log",
                    f"无法读取标准输入：{error.strerror or error}；请给出日志",
                )
            ) from None
    if len(args.logs) == 1 and _is_message(args.logs[0]):
        return explain_text(args.logs[0], book)
    paths = expanded(args.logs)
    with long_task(_READING, args.quiet, Counted.BYTES, options.language_of(args)) as progress:
        return explain_logs(paths, book, progress)


def _is_message(text: str) -> bool:
    if not any(letter.isspace() for letter in text.strip()):
        return False
    try:
        return not Path(text).exists()
    except (OSError, ValueError):  # too long for a name, or with a zero byte
        return True

"""`ferry bundle`: one archive for a vendor's issue tracker: a test of the operator, its tensors, versions, log lines."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser, WrongValue
from torchferry.cli.output import need, show
from torchferry.errors import OutputError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

_OUTPUT = "issue.zip"
_SECONDS = 120.0
ABOUT = About(
    Text(
        "Packs a test of the operator, its tensors, the versions and the decisive log lines. Paths, names of users and "
        "machines, addresses, e-mails, keys and values of variables are replaced by placeholders, and a list of what "
        "was removed is printed. Nothing is sent anywhere.",
        "打包算子的测试、张量、版本和关键日志行。路径、用户名和机器名、地址、邮箱、密钥和变量值会替换为占位符，并列出移除的内容。"
        "不会发送到任何地方。",
    ),
    (
        Example(
            "ferry bundle npu.h5 --call 12 --to ascend",
            Text("A call of a recording, into issue.zip", "记录中的一次调用，写入 issue.zip"),
        ),
        Example(
            "ferry bundle npu.h5 --call 12 logs/ --to ascend --dry-run",
            Text("Dry run: list what would be in it", "试运行：列出将包含的内容"),
        ),
        Example(
            "ferry bundle test_gelu.py train.log --to ascend --hide projectx -o gelu.tar.gz",
            Text("A test and a log, without the project's name", "测试和日志，并隐去项目名称"),
        ),
    ),
    usage=("SOURCE ... --to VENDOR [--call N] [-o FILE] [OPTIONS]",),
    exit_codes=(
        ("0", Text("Written, or with --dry-run listed", "已写出，或使用 --dry-run 时已列出")),
        (
            "2",
            Text(
                "Wrong usage or wrong input, or too large; nothing was written",
                "用法或输入有误，或体积过大；未写入任何内容",
            ),
        ),
        ("3", Text("Written, but some logs could not be read", "已写出，但部分日志无法读取")),
    ),
    page="how-to/bundle.md",
)


_PACKING = Text("packing", "正在打包")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry bundle`."""
    text = Text(
        "A recording (with --call) or a test written by `ferry case`, and any number of logs and folders of logs",
        "一份记录（配合 --call）或 `ferry case` 写出的测试，以及任意数量的日志和日志文件夹",
    )
    parser.add("sources", nargs="+", type=Path, metavar="SOURCE", text=text)
    text = Text(
        "Vendor whose device the issue is about, by name or device type",
        "问题涉及哪个厂商的设备，可用名称或设备类型",
    )
    options.add_to(parser, text, required=True)
    options.add_vendor_path(parser)
    text = Text(
        "Number of the call in the recording (default: its only one)", "记录中的调用编号（默认：唯一的调用）"
    )
    parser.add("--call", type=options.at_least_one, metavar="N", text=text)
    group = parser.group(Text("The archive", "归档"))
    text = Text(
        "The archive, .zip or .tar.gz (default: {name})", "归档文件，.zip 或 .tar.gz（默认：{name}）"
    ).format(name=_OUTPUT)
    options.add_output(group, _OUTPUT, text)
    options.add_force(group)
    text = Text(
        "Largest size; the recording, then the recorded inputs are left out to fit (default: 25MB)",
        "最大体积；超出时先舍去记录，再舍去记录的输入（默认：25MB）",
    )
    group.add("--most", type=_size, metavar="SIZE", text=text)
    options.add_repeatable(
        group,
        "--hide",
        "WORD",
        Text("Also remove this word, for example a project's name", "同时移除该词，例如项目名称"),
    )
    options.add_switch(
        group,
        "--dry-run",
        Text(
            "Write nothing; list what would be in it and what is removed", "不写入；列出将包含和将移除的内容"
        ),
    )
    group = parser.group(Text("Running the test", "运行测试"))
    options.add_switch(group, "--no-run", Text("Do not run the test on the device", "不在设备上运行测试"))
    options.add_emulate(group)
    text = Text(
        "Count a run that takes longer as failed (default: {seconds})",
        "超过该秒数的运行视为失败（默认：{seconds}）",
    )
    options.add_timeout(group, text.format(seconds=f"{_SECONDS:g}"), _SECONDS)
    options.add_format(parser)
    options.add_quiet(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Make the archive, say what is in it; the answer is an exit code."""
    from torchferry.bundle.archive import check_archive_name
    from torchferry.bundle.making import check_sources, make_bundle
    from torchferry.bundle.model import MOST, BundleRequest
    from torchferry.bundle.report import REPORTS

    request = BundleRequest(
        tuple(args.sources),
        get_vendor(args.to, args.vendor_path),
        args.call,
        options.language_of(args),
        args.most or MOST,
        tuple(args.hide),
        tuple(args.vendor_path),
        not args.no_run,
        args.emulate,
        args.timeout,
        args.quiet,
    )
    check_archive_name(args.output)
    if not args.dry_run:
        _check_output(args)
    check_sources(request)
    need("torch", "torch")
    with long_task(_PACKING, args.quiet, Counted.BYTES, options.language_of(args)) as progress:
        made = make_bundle(request, args.output, is_dry=args.dry_run, show=progress)
    show(REPORTS, made, args)
    return 3 if made.unread else 0


def _check_output(args: argparse.Namespace) -> None:
    path: Path = args.output
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(
            Text(
                f"{path}: can't be written there; name a file in a folder that exists",
                f"{path}：无法在此写入；请指定已存在文件夹中的文件",
            )
        )
    if os.path.lexists(path) and not args.force:
        raise OutputError(
            Text(
                f"{path}: exists already; --force replaces it, -o FILE names another",
                f"{path}：已存在；--force 可覆盖，-o FILE 可另外指定",
            )
        )


def _size(text: str) -> int:
    from torchferry.errors import RunError
    from torchferry.sim.environment import parse_memory

    try:
        return parse_memory(text)
    except RunError:
        raise WrongValue(_NO_SIZE.format(text=text)) from None


_NO_SIZE = Text(
    "'{text}' is not a size; write 25MB, 1GiB or a number of bytes",
    "'{text}' 不是大小；请写成 25MB、1GiB 或字节数",
)

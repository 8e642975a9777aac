"""`ferry checkpoint`: what is inside a checkpoint, without running anything of it, or a repaired copy."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser, WrongValue
from torchferry.cli.output import check_reports, deliver, show, warn_of_pickle
from torchferry.errors import RunError
from torchferry.report.progress import long_task
from torchferry.text import Text

ABOUT = About(
    Text(
        "No code of a file is run: its pickle is read, tensors are described, classes are only named.",
        "不执行文件中的任何代码：只读取 pickle，描述张量，列出类名。",
    ),
    (
        Example("ferry checkpoint info model.pth", Text("Show what is inside", "显示文件内容")),
        Example(
            "ferry checkpoint fix model.pth --strip module. -o clean.pth",
            Text("Remove the prefix of DataParallel", "去掉 DataParallel 的前缀"),
        ),
    ),
    page="how-to/checkpoint.md",
)
_INFO_ABOUT = About(
    Text(
        "Lists tensors, their names, shapes, dtypes and devices, and the classes that the file names, without running "
        "anything of it.",
        "列出张量的名称、形状、数据类型和设备，以及文件中提到的类，不执行其中任何内容。",
    ),
    (
        Example("ferry checkpoint info model.pth", Text("Show what is inside", "显示文件内容")),
        Example(
            "ferry checkpoint info model.pth --check",
            Text("Fail if the file could run commands", "文件可能执行命令时以失败结束"),
        ),
    ),
    exit_codes=(
        (
            "1",
            Text(
                "With --check: the file names what could run commands or touch files",
                "使用 --check 时：文件中提到可能执行命令或访问文件的内容",
            ),
        ),
    ),
    page="how-to/checkpoint.md",
)
_FIX_ABOUT = About(
    Text(
        "Writes a copy with other names, devices, dtypes or without classes; the input is not changed.",
        "写出名称、设备、数据类型不同或不含类的副本；输入保持不变。",
    ),
    (
        Example(
            "ferry checkpoint fix model.pth --strip module. -o clean.pth",
            Text("Remove the prefix of DataParallel", "去掉 DataParallel 的前缀"),
        ),
        Example(
            "ferry checkpoint fix npu.pth --map npu:cpu --plain -o cpu.pth",
            Text("Make it loadable everywhere", "使其在任何机器上都能加载"),
        ),
        Example(
            "ferry checkpoint fix model.pth --part state_dict -o model.safetensors",
            Text("Take one part, as safetensors", "取其中一部分，写成 safetensors"),
        ),
    ),
    page="how-to/checkpoint.md",
)
_NOT_A_PAIR = Text(
    "'{text}' is not OLD=NEW, for example backbone.=encoder.",
    "'{text}' 不是 OLD=NEW，例如 backbone.=encoder.",
)
_NOT_DEVICES = Text(
    "'{text}' is not FROM:TO, for example npu:cpu or cuda:0:npu:0",
    "'{text}' 不是 FROM:TO，例如 npu:cpu 或 cuda:0:npu:0",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry checkpoint`."""
    _add_info(parser.verb("info", Text("Show what is inside a checkpoint", "显示检查点的内容"), _INFO_ABOUT))
    _add_fix(
        parser.verb(
            "fix", Text("Write a repaired copy of a checkpoint", "写出修复后的检查点副本"), _FIX_ABOUT
        )
    )


def _add_info(info: Parser) -> None:
    text = Text(
        ".pth, .pt, .pth.tar, .bin, .ckpt, .safetensors, .npz ..., or a folder of shards",
        ".pth、.pt、.pth.tar、.bin、.ckpt、.safetensors、.npz 等，或分片文件夹",
    )
    info.add("file", type=Path, metavar="FILE", text=text)
    options.add_format(info)
    options.add_outputs(info)
    options.add_verbose(info)
    options.add_check(
        info,
        Text(
            "the file names what could run commands or touch files", "文件中提到可能执行命令或访问文件的内容"
        ),
    )
    options.add_quiet(info)
    options.add_language(info)


def _add_fix(fix: Parser) -> None:
    text = Text(
        "Checkpoint to repair, a file or a folder of shards; it is not changed",
        "要修复的检查点（文件或分片文件夹）；保持不变",
    )
    fix.add("file", type=Path, metavar="FILE", text=text)
    text = Text(
        "The copy; .safetensors writes that format, any other suffix that of torch.save",
        "副本；后缀为 .safetensors 时写该格式，其他后缀写 torch.save 的格式",
    )
    fix.add("-o", "--output", type=Path, required=True, metavar="FILE", text=text)
    group = fix.group(Text("What changes", "修改内容"))
    options.add_part(
        group,
        Text(
            "Take only this part, for example state_dict or model.ema",
            "只取这一部分，例如 state_dict 或 model.ema",
        ),
    )
    text = Text(
        "Remove PREFIX from the names of weights, for example module.",
        "从权重名称中去掉 PREFIX，例如 module.",
    )
    options.add_repeatable(group, "--strip", "PREFIX", text)
    text = Text(
        "Let names of weights that begin with OLD begin with NEW, for example backbone.=encoder. or =module.",
        "将以 OLD 开头的权重名称改为以 NEW 开头，例如 backbone.=encoder. 或 =module.",
    )
    options.add_repeatable(group, "--rename", "OLD=NEW", text, type=_beginnings)
    text = Text(
        "Mark tensors saved on one device with another, for example npu:cpu, cuda:1:npu:0, *:cpu",
        "将保存在某设备上的张量标记为另一设备，例如 npu:cpu、cuda:1:npu:0、*:cpu",
    )
    options.add_repeatable(group, "--map", "FROM:TO", text, type=_devices)
    text = Text("Write floating-point weights in this dtype", "以该数据类型写出浮点权重")
    group.add("--dtype", default="", choices=("float64", "float32", "float16", "bfloat16"), text=text)
    text = Text(
        "Write what objects hold without their classes, so that torch.load takes it with weights_only",
        "只写对象的内容而不写其类，使 torch.load 能以 weights_only 加载",
    )
    options.add_switch(group, "--plain", text)
    options.add_allow_pickle(fix)
    options.add_force(
        fix, Text("Replace a file that exists, even the input", "覆盖已存在的文件，包括输入文件")
    )
    options.add_format(
        fix, text=Text("Format of the printed summary (default: text)", "输出摘要的格式（默认：text）")
    )
    options.add_quiet(fix)
    options.add_language(fix)


def _beginnings(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or old == new:
        raise WrongValue(_NOT_A_PAIR.format(text=text))
    return old, new


def _devices(text: str) -> tuple[str, str]:
    """FROM:TO, where each may have a number: npu:cpu, npu:0:cpu, npu:cuda:1."""
    words = text.split(":")
    for cut in range(1, len(words)):
        if _is_device(words[:cut]) and _is_device(words[cut:]):
            return ":".join(words[:cut]), ":".join(words[cut:])
    raise WrongValue(_NOT_DEVICES.format(text=text))


def _is_device(words: list[str]) -> bool:
    kind, *number = words
    is_kind = kind == "*" or (kind.isascii() and kind.isidentifier())
    return is_kind and (not number or (len(number) == 1 and number[0].isdecimal()))


_READING = Text("reading the checkpoint", "正在读取检查点")
_WRITING = Text("writing the checkpoint", "正在写检查点")


def run(args: argparse.Namespace) -> int:
    """Read, and say or write; the answer is an exit code."""
    if args.action == "fix":
        return _fix(args)
    from torchferry.checkpoint.classes import LoadingNeed, named
    from torchferry.checkpoint.folders import read
    from torchferry.checkpoint.report import REPORTS

    check_reports(REPORTS, args.output)
    with long_task(_READING, args.quiet, language=options.language_of(args)):
        contents = read(args.file)
    deliver(REPORTS, contents, args)
    return int(args.check and bool(named(contents.globals, LoadingNeed.DANGEROUS)))


def _fix(args: argparse.Namespace) -> int:
    from torchferry.checkpoint.model import Repair
    from torchferry.checkpoint.report import REPAIRS
    from torchferry.cli import next_step

    try:
        from torchferry.checkpoint.fixing import repair
    except ModuleNotFoundError as error:
        raise RunError(
            Text(
                f"ferry checkpoint fix needs {error.name}; pip install {error.name}",
                f"ferry checkpoint fix 需要 {error.name}；pip install {error.name}",
            )
        ) from None
    if args.allow_pickle:
        warn_of_pickle()
    asked = Repair(
        args.only,
        tuple(args.strip),
        tuple(args.map),
        args.allow_pickle,
        args.force,
        tuple(args.rename),
        args.dtype,
        args.plain,
    )
    with long_task(_WRITING, args.quiet, language=options.language_of(args)):
        done = repair(args.file, args.output, asked)
    show(REPAIRS, done, args)
    if done.is_state_dict:
        print(f"\n{next_step.after_mending(args.output).in_language(options.language_of(args))}")
    return 0

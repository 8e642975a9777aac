"""Say what is inside a checkpoint file without running anything of it, or write a mended copy."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.cli import options
from torchferry.errors import RunError

_EPILOG = """No code of a file is run: its pickle is read, tensors are described, classes are only named.

exit codes: 0 fine; 1 with --check: the file names what could run commands or touch files; 2 bad usage or bad input"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_info(
        actions.add_parser(
            "info", help="what is inside a file", description="Say what is inside a checkpoint."
        )
    )
    _add_fix(
        actions.add_parser(
            "fix", help="write a mended copy", description="Write a mended copy of a checkpoint."
        )
    )


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help=".pth, .pt, .pth.tar, .bin, .ckpt, .safetensors, .npz ..., or a folder of shards",
    )
    options.add_all(parser, "list every tensor, not only the first 20")
    options.add_switch(parser, "--json", "print everything as JSON")
    options.add_check(parser, "the file names what could run commands or touch files")
    options.add_language(parser)


def _add_fix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="the checkpoint to mend, a file or a folder of shards; it is left as it is",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the copy; the suffix .safetensors writes that format, any other that of torch.save",
    )
    parser.add_argument(
        "--only", default="", metavar="PART", help="take this part alone, as state_dict or model.ema"
    )
    options.add_repeatable(
        parser, "--strip", "PREFIX", "take this off the names of weights that begin with it, as module. "
    )
    parser.add_argument(
        "--rename",
        action="append",
        type=_beginnings,
        default=[],
        metavar="OLD=NEW",
        help="names of weights that begin with OLD begin with NEW, as backbone.=encoder. or =module. ; repeatable",
    )
    parser.add_argument(
        "--map",
        action="append",
        type=_devices,
        default=[],
        metavar="FROM:TO",
        help="tensors saved on one device are marked with another, as npu:cpu, cuda:1:npu:0, *:cpu; repeatable",
    )
    parser.add_argument(
        "--dtype",
        default="",
        choices=("float64", "float32", "float16", "bfloat16"),
        help="weights of floating point are written with this dtype",
    )
    options.add_switch(
        parser,
        "--plain",
        "write what objects hold without their classes, so that torch.load takes it with weights_only",
    )
    options.add_switch(
        parser,
        "--allow-pickle",
        "let code run that the file names, where it can't be loaded otherwise: only for files that you trust",
    )
    options.add_switch(parser, "--force", "replace a file that is there already, even the input")
    options.add_language(parser)


def _beginnings(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or old == new:
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD=NEW, as backbone.=encoder.")
    return old, new


def _devices(text: str) -> tuple[str, str]:
    """FROM:TO, where each may have a number: npu:cpu, npu:0:cpu, npu:cuda:1."""
    words = text.split(":")
    for cut in range(1, len(words)):
        if _is_device(words[:cut]) and _is_device(words[cut:]):
            return ":".join(words[:cut]), ":".join(words[cut:])
    raise argparse.ArgumentTypeError(f"{text!r} is not FROM:TO, as npu:cpu or cuda:0:npu:0")


def _is_device(words: list[str]) -> bool:
    kind, *number = words
    is_kind = kind == "*" or (kind.isascii() and kind.isidentifier())
    return is_kind and (not number or (len(number) == 1 and number[0].isdecimal()))


def run(args: argparse.Namespace) -> int:
    """Read, and say or write; the answer is an exit code."""
    return _fix(args) if args.action == "fix" else _info(args)


def _info(args: argparse.Namespace) -> int:
    from torchferry.checkpoint.classes import LoadingNeed, named
    from torchferry.checkpoint.folders import read
    from torchferry.checkpoint.report import REPORTS
    from torchferry.report.formats import Options

    contents = read(args.file)
    wanted = Options(options.language_of(args), everything=args.all)
    REPORTS.show(contents, "json" if args.json else "text", wanted)
    return int(args.check and bool(named(contents.globals, LoadingNeed.DANGEROUS)))


def _fix(args: argparse.Namespace) -> int:
    from torchferry.checkpoint.model import Repair
    from torchferry.checkpoint.report import REPAIRS
    from torchferry.cli import next_step
    from torchferry.report.formats import Options

    try:
        from torchferry.checkpoint.fixing import repair
    except ModuleNotFoundError as error:
        raise RunError(f"ferry checkpoint fix needs {error.name}; pip install {error.name}") from None
    if args.allow_pickle:
        print("ferry: --allow-pickle: code that the file names may run", file=sys.stderr)
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
    done = repair(args.file, args.output, asked)
    REPAIRS.show(done, options=Options(options.language_of(args)))
    if done.is_state_dict:
        print(f"\n{next_step.after_mending(args.output, args.lang)}")
    return 0

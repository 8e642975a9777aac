"""Say what is inside a checkpoint file without running anything of it, or write a mended copy."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import show
from torchferry.errors import RunError

_EPILOG = """No code of a file is run: its pickle is read, tensors are described, classes are only named.

exit codes: 0 fine; 1 with --check: the file names what could run commands or touch files; 2 bad usage or bad input"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry checkpoint`."""
    parser.epilog = _EPILOG
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    info = actions.add_parser(
        "info", help="what is inside a file", description="Say what is inside a checkpoint."
    )
    info.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help=".pth, .pt, .pth.tar, .bin, .ckpt, .safetensors, .npz ..., or a folder of shards",
    )
    options.add_all(info, "list every tensor, not only the first 20")
    options.add_json(info)
    options.add_check(info, "the file names what could run commands or touch files")
    options.add_language(info)
    fix = actions.add_parser(
        "fix", help="write a mended copy", description="Write a mended copy of a checkpoint."
    )
    fix.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="the checkpoint to mend, a file or a folder of shards; it is left as it is",
    )
    fix.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the copy; the suffix .safetensors writes that format, any other that of torch.save",
    )
    options.add_part(fix, "take this part alone, as state_dict or model.ema")
    options.add_repeatable(
        fix, "--strip", "PREFIX", "take this off the names of weights that begin with it, as module. "
    )
    options.add_repeatable(
        fix,
        "--rename",
        "OLD=NEW",
        "names of weights that begin with OLD begin with NEW, as backbone.=encoder. or =module. ",
        type=_beginnings,
    )
    options.add_repeatable(
        fix,
        "--map",
        "FROM:TO",
        "tensors saved on one device are marked with another, as npu:cpu, cuda:1:npu:0, *:cpu",
        type=_devices,
    )
    fix.add_argument(
        "--dtype",
        default="",
        choices=("float64", "float32", "float16", "bfloat16"),
        help="weights of floating point are written with this dtype",
    )
    options.add_switch(
        fix,
        "--plain",
        "write what objects hold without their classes, so that torch.load takes it with weights_only",
    )
    options.add_allow_pickle(fix)
    options.add_switch(fix, "--force", "replace a file that is there already, even the input")
    options.add_language(fix)


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
    if args.action == "fix":
        return _fix(args)
    from torchferry.checkpoint.classes import LoadingNeed, named
    from torchferry.checkpoint.folders import read
    from torchferry.checkpoint.report import REPORTS

    contents = read(args.file)
    show(REPORTS, contents, args)
    return int(args.check and bool(named(contents.globals, LoadingNeed.DANGEROUS)))


def _fix(args: argparse.Namespace) -> int:
    from torchferry.checkpoint.model import Repair
    from torchferry.checkpoint.report import REPAIRS
    from torchferry.cli import next_step

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
    show(REPAIRS, done, args)
    if done.is_state_dict:
        print(f"\n{next_step.after_mending(args.output).in_language(options.language_of(args))}")
    return 0

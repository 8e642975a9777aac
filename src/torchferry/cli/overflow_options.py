"""The options of `ferry overflow`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import record_options, values

DEFAULT_OUTPUT = "overflow.h5"
_LAST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = "ferry overflow [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.epilog = (
        "Exit code 1: an overflow was found; 0: none; 3: the program failed before its end. An infinity that comes "
        "from a number in the program (masked_fill with -inf, a causal mask) or from an input that has it already is "
        "passed on, not made. Overflows of scaled gradients that a GradScaler then skips are normal, and only noted. "
        "torch.compile is switched off, so that every operator shows."
    )
    record_options.add_program_arguments(parser)
    _add_what(parser)
    _add_results(parser)
    record_options.add_place_arguments(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is checked")
    group.add_argument(
        "--steps",
        type=values.steps,
        default=1,
        metavar="N",
        help="so many steps of the optimizer, steps that a GradScaler skips not counted; then the program is ended. "
        "`all`: to the program's own end (default: 1)",
    )
    group.add_argument(
        "--fp16",
        dest="half",
        action="store_true",
        help="also find what would overflow in float16 (larger than 65504) in a program that computes in a wider "
        "dtype, and say what would become zero",
    )
    group.add_argument(
        "--all",
        "--strict",
        dest="strict",
        action="store_true",
        help="also stop at what a GradScaler would handle by skipping the step, and at infinities that look intended",
    )
    group.add_argument(
        "--whole",
        action="store_true",
        help="check from `import torch` on, set-up included: for programs that call no module, or whose data has NaN "
        "(default: from the first call of a module with parameters)",
    )
    group.add_argument(
        "--keep-going",
        action="store_true",
        help="do not end the program at the first overflow; note the others, too",
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is told")
    group.add_argument(
        "--last",
        type=values.at_least_one,
        default=_LAST,
        metavar="N",
        help=f"operators before the overflow that are listed, with figures of their tensors (default: {_LAST})",
    )
    group.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the record with the inputs of the operator as they were before the call, written if there is an "
        f"overflow (default: {DEFAULT_OUTPUT}); named here, and with --to, a test of the operator is written beside "
        "it. With several processes FILE.rank0.h5 ...",
    )
    group.add_argument(
        "--format", choices=("text", "json"), default="text", help="of the report (default: text)"
    )

"""The options of `ferry watch`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import record_options, values

DEFAULT_OUTPUT = "watch.h5"
_EVERY = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = "ferry watch [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.epilog = (
        "Keeps statistics of the loss, of gradients, parameters and their updates, of the statistics of batch norms, "
        "of what modules answer and the gradients of that, learning rates, the scale of a GradScaler and the time of "
        "the step. `ferry compare a.h5 b.h5` then says at which step and module two runs part. The program runs to "
        "its own end, and the command ends with its exit code. torch.compile is switched off, so that every module "
        "shows."
    )
    record_options.add_program_arguments(parser)
    parser.add_argument(
        "--every",
        type=values.at_least_one,
        default=_EVERY,
        metavar="N",
        help=f"watch the first step of the optimizer and each N-th (default: {_EVERY})",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(DEFAULT_OUTPUT),
        metavar="FILE",
        help="the record; it can be read at any time, also while the program runs or after it was killed. With "
        "several processes FILE.rank0.h5 ... A record of an earlier run of that name is replaced (default: "
        f"{DEFAULT_OUTPUT})",
    )
    record_options.add_place_arguments(parser)

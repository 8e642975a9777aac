"""Keep light statistics of a long training at every n-th step: what two runs are told apart by later."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import interrupted, say
from torchferry.cli.program import add_place, add_program, place_of, program_of
from torchferry.errors import RunError

if TYPE_CHECKING:
    from torchferry.accuracy.record.launching import Recorded
    from torchferry.accuracy.record.settings import WatchSettings
    from torchferry.launch.program import Program

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
    add_program(parser)
    parser.add_argument(
        "--every",
        type=options.at_least_one,
        default=_EVERY,
        metavar="N",
        help=f"watch the first step of the optimizer and each N-th (default: {_EVERY})",
    )
    options.add_output(
        parser,
        DEFAULT_OUTPUT,
        "the record; it can be read at any time, also while the program runs or after it was killed. With "
        "several processes FILE.rank0.h5 ... A record of an earlier run of that name is replaced (default: "
        f"{DEFAULT_OUTPUT})",
    )
    add_place(parser)


_COMMAND = "ferry watch"


def run(args: argparse.Namespace) -> int:
    """Watch a program; the answer is the program's own exit code."""
    from torchferry.accuracy.record.launching import build_for, run_recorded
    from torchferry.accuracy.record.outputs import noted

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    settings = _settings(args)
    note = build_for(place, args.quiet)
    for sentence in noted([note] if note else []):
        say(args, _COMMAND, sentence)
    recorded = run_recorded(program, settings, place, args.timeout)
    _report(args, recorded)
    if recorded.ending.signal:
        interrupted(
            recorded.ending.signal,
            "interrupted; what was watched until then is kept" if recorded.files else "",
        )
    if not recorded.files:
        raise RunError(_nothing_watched(program, recorded))
    return recorded.ending.exit_code


def _settings(args: argparse.Namespace) -> WatchSettings:
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import check_output
    from torchferry.accuracy.record.settings import WatchSettings

    output = Path(args.output).absolute()
    return WatchSettings(
        str(output),
        kept=Kept.STATISTICS,
        steps=None,
        seed=args.seed,
        replaced=check_output(output),
        every=args.every,
    )


def _report(args: argparse.Namespace, recorded: Recorded) -> None:
    from torchferry.accuracy.record.outputs import sentences

    for outcome, was_repaired in recorded.files:
        for sentence in sentences(outcome, was_repaired):
            say(args, _COMMAND, sentence)


def _nothing_watched(program: Program, recorded: Recorded) -> str:
    if recorded.ending.exit_code:
        code = recorded.ending.exit_code
        return f"{program.target}: ended with exit code {code} before anything was seen; its output is above"
    return f"{program.target}: called no module that has parameters, so there was nothing to watch"

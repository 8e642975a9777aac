"""Keep light statistics of a long training at every n-th step: what two runs are told apart by later."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import say
from torchferry.cli.program import add_place, add_program, place_of, program_of
from torchferry.errors import RunError

DEFAULT_OUTPUT = "watch.h5"
_EVERY = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry watch`."""
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
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import build_for, check_output, run_recorded
    from torchferry.accuracy.record.outputs import noted, sentences
    from torchferry.accuracy.record.settings import WatchSettings
    from torchferry.launch.supervise import stop_if_told

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    output = Path(args.output).absolute()
    settings = WatchSettings(
        str(output),
        kept=Kept.STATISTICS,
        steps=None,
        seed=args.seed,
        replaced=check_output(output),
        every=args.every,
    )
    say(args, _COMMAND, *noted(filter(None, [build_for(place, args.quiet)])))
    recorded = run_recorded(program, settings, place, args.timeout)
    for outcome, was_repaired in recorded.files:
        say(args, _COMMAND, *sentences(outcome, was_repaired))
    ending = recorded.ending
    stop_if_told(ending, "interrupted; what was watched until then is kept" if recorded.files else "")
    if recorded.files:
        return ending.exit_code
    if ending.exit_code:
        raise RunError(
            f"{program.target}: ended with exit code {ending.exit_code} before anything was seen; its output is above"
        )
    raise RunError(f"{program.target}: called no module that has parameters, so there was nothing to watch")

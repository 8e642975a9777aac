"""Keep light statistics of a long training at every n-th step: what two runs are told apart by later."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import record_options, watch_options
from torchferry.errors import RunError
from torchferry.text import Text, user_language

if TYPE_CHECKING:
    from torchferry.accuracy.record.launching import Recorded
    from torchferry.accuracy.record.settings import RecordSettings
    from torchferry.launch.program import Program

add_arguments = watch_options.add_arguments

_COMMAND = "ferry watch"


def run(args: argparse.Namespace) -> int:
    """Watch a program; the answer is the program's own exit code."""
    from torchferry.accuracy.record.launching import build_for, run_recorded
    from torchferry.accuracy.record.telling import noted
    from torchferry.launch.supervise import Told

    program, place = record_options.program_of(args, _COMMAND), record_options.place_of(args)
    settings = _settings(args)
    note = build_for(place, args.quiet)
    if note:
        for sentence in noted([note]):
            _say(args, sentence)
    recorded = run_recorded(program, settings, place, args.timeout)
    _report(args, recorded)
    if recorded.ending.signal:
        told = Told(recorded.ending.signal)
        told.args = ("interrupted; what was watched until then is kept",) if recorded.files else ()
        raise told
    if not recorded.files:
        raise RunError(_nothing_watched(program, recorded))
    return recorded.ending.exit_code


def _settings(args: argparse.Namespace) -> RecordSettings:
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import check_output
    from torchferry.accuracy.record.settings import RecordSettings, What

    output = Path(args.output).absolute()
    return RecordSettings(
        What.WATCH,
        str(output),
        kept=Kept.STATISTICS,
        steps=None,
        seed=args.seed,
        replaced=check_output(output),
        options={"every": args.every},
    )


def _report(args: argparse.Namespace, recorded: Recorded) -> None:
    from torchferry.accuracy.record.telling import sentences

    for outcome, was_repaired in recorded.files:
        for sentence in sentences(outcome, was_repaired):
            _say(args, sentence)


def _nothing_watched(program: Program, recorded: Recorded) -> str:
    if recorded.ending.exit_code:
        code = recorded.ending.exit_code
        return f"{program.target}: ended with exit code {code} before anything was seen; its output is above"
    return f"{program.target}: called no module that has parameters, so there was nothing to watch"


def _say(args: argparse.Namespace, line: Text) -> None:
    if not args.quiet:
        print(f"{_COMMAND}: {line.in_language(args.lang or user_language())}", file=sys.stderr, flush=True)

"""Record what every operator of a program is given and makes of it, for a step or several, in one HDF5 file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import record_options
from torchferry.errors import InputError, RunError
from torchferry.text import Text, user_language

if TYPE_CHECKING:
    from torchferry.accuracy.record.launching import Place, Recorded
    from torchferry.accuracy.record.outputs import Outcome
    from torchferry.accuracy.record.settings import RecordSettings
    from torchferry.launch.program import Program

add_arguments = record_options.add_arguments

_INFO, _CONVERT, _KERNELS = "info", "convert", "kernels"
_SOME_FAILED = 3
_COMMAND = "ferry record"


def run(args: argparse.Namespace) -> int:
    """Record a program, or look into a record; the answer is an exit code."""
    verb = "" if args.is_module else next(iter(args.program), "")
    if verb in (_INFO, _CONVERT):
        from torchferry.cli import record_files

        return record_files.run(verb, args.program[1:])
    if verb == _KERNELS:
        from torchferry.cli import record_kernels

        return record_kernels.run(args.program[1:])
    from torchferry.accuracy.record.launching import build_for, run_recorded

    program, place = record_options.program_of(args, _COMMAND), record_options.place_of(args)
    settings = _settings(args)
    _tell_place(args, place)
    note = build_for(place, args.quiet)
    recorded = run_recorded(program, settings, place, args.timeout)
    return _report(args, program, settings, recorded, (note,) if note else ())


def _settings(args: argparse.Namespace) -> RecordSettings:
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import check_output
    from torchferry.accuracy.record.settings import RecordSettings, What

    output = Path(args.output).absolute()
    if args.whole and args.first_step > 1:
        raise RunError("--whole and --from: only one of them at a time; leave one out")
    kept = Kept.STATISTICS if args.stats else Kept.INPUTS if args.inputs else Kept.TENSORS
    return RecordSettings(
        What.RECORD,
        str(output),
        kept=kept,
        first_step=args.first_step,
        steps=args.steps,
        whole=args.whole,
        keep_going=args.keep_going,
        modules=tuple(args.modules),
        operators=tuple(args.operators),
        phases=tuple(args.phases),
        rank=args.rank,
        replay=str(_golden(args.replay, output)) if args.replay else "",
        seed=args.seed,
        replaced=check_output(output),
    )


def _golden(replay: Path, output: Path) -> Path:
    """The record to replay, looked at before the run: of one process, or the first rank's of several."""
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.outputs import files_of

    golden = replay.absolute()
    if {path.resolve() for path in files_of(output)} & {path.resolve() for path in files_of(golden)}:
        raise RunError(f"{replay}: is to be replayed and overwritten at once; name another file with -o")
    for record in open_records(golden):
        with record:
            if record.header.kept is Kept.STATISTICS:
                raise InputError(
                    f"{record.path}: holds statistics alone, no inputs to replay; record it without --stats"
                )
    return golden


def _tell_place(args: argparse.Namespace, place: Place) -> None:
    from torchferry.launch import plugin

    if place.vendor is not None and place.simulated and not args.sim:
        _say(args, plugin.not_installed(place.vendor))


def _report(
    args: argparse.Namespace,
    program: Program,
    settings: RecordSettings,
    recorded: Recorded,
    notes: tuple[str, ...],
) -> int:
    from torchferry.accuracy.record.telling import noted, sentences
    from torchferry.launch.supervise import Told

    for outcome, was_repaired in recorded.files:
        for sentence in sentences(outcome, was_repaired, settings.steps):
            _say(args, sentence)
    for sentence in noted(notes):
        _say(args, sentence)
    if recorded.ending.signal:
        told = Told(recorded.ending.signal)
        told.args = ("interrupted; what was recorded until then is kept",) if recorded.files else ()
        raise told
    if not recorded.files:
        raise RunError(_nothing_recorded(program, settings, recorded))
    if not any(outcome.calls for outcome, _ in recorded.files) and not recorded.ending.exit_code:
        raise RunError(
            f"{args.output}: holds no call: no operator of these steps fits --module, --op and --phase; "
            "`ferry record --stats` without them, then `ferry record info`, shows what there is"
        )
    return 0 if _is_complete(settings, recorded) else _SOME_FAILED


def _is_complete(settings: RecordSettings, recorded: Recorded) -> bool:
    """What the early end of a process does to the program is not its fault."""
    outcomes = [outcome for outcome, _ in recorded.files]
    if any(outcome.problem or not outcome.is_over for outcome in outcomes):
        return False
    if not recorded.ending.exit_code:
        return True
    return not settings.keep_going and all(_has_all_steps(settings, outcome) for outcome in outcomes)


def _has_all_steps(settings: RecordSettings, outcome: Outcome) -> bool:
    return settings.steps is not None and outcome.steps >= settings.steps


def _nothing_recorded(program: Program, settings: RecordSettings, recorded: Recorded) -> str:
    if recorded.ending.out_of_time:
        return f"{program.target}: took longer than --timeout allows, and nothing was recorded"
    if recorded.ending.exit_code:
        code = recorded.ending.exit_code
        return (
            f"{program.target}: ended with exit code {code} before anything was recorded; its output is above"
        )
    if settings.rank:
        return (
            f"{program.target}: no process had the rank {settings.rank}; leave --rank out, or say another one"
        )
    if settings.first_step > 1:
        return f"{program.target}: ended before step {settings.first_step}; record an earlier one with --from"
    return (
        f"{program.target}: called no module that has parameters, so nothing was recorded; --whole records all that "
        "a program calls"
    )


def _say(args: argparse.Namespace, line: Text) -> None:
    if not args.quiet:
        print(f"{_COMMAND}: {line.in_language(args.lang or user_language())}", file=sys.stderr, flush=True)

"""Profile a few steps of a program, without an edit of it: operators, shapes, memory, and the lines that call them."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import say
from torchferry.cli.program import add_place, add_program, place_of, program_of, say_if_simulated
from torchferry.errors import RunError
from torchferry.report.progress import beside_program
from torchferry.text import Text

DEFAULT_OUTPUT = "prof"
_DEFAULT_STEPS = "10:12"
_DEFAULT_WARMUP = 1
_RANGE = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry profile`."""
    parser.usage = "ferry profile [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.epilog = (
        "A step reaches from the end of an optimizer's step to the end of the next one, so that the time in which the "
        "program waits for data is in it. Before the first of them the program runs as fast as without a profiler. "
        "`ferry analyze DIR` says what takes the time."
    )
    add_program(parser)
    options.add_output(
        parser,
        DEFAULT_OUTPUT,
        "the profile: run.json, and a trace of each process. It comes whole or not at all; a profile of that "
        f"name is replaced, any other folder is not (default: {DEFAULT_OUTPUT})",
        "DIR",
    )
    group = parser.add_argument_group("what is profiled")
    group.add_argument(
        "--steps",
        type=steps,
        default=steps(_DEFAULT_STEPS),
        metavar="FIRST:LAST",
        help="these steps, counted from 1, or only one of them; the first ones of a program compile "
        f"and load, and tell little. The program is ended after the last (default: {_DEFAULT_STEPS})",
    )
    group.add_argument(
        "--warmup",
        type=options.whole_number(0),
        default=_DEFAULT_WARMUP,
        metavar="N",
        help="steps before the first one in which the profiler is on, and keeps nothing: what its start costs is not "
        f"in the profile (default: {_DEFAULT_WARMUP})",
    )
    options.add_switch(group, "--no-stacks", "without Python's functions: costs less, names no lines")
    options.add_switch(group, "--no-shapes", "without the shapes, strides and types of operators' inputs")
    options.add_switch(group, "--no-memory", "without allocations")
    options.add_switch(group, "--keep-running", "let the program go on, unprofiled, after the last step")
    add_place(parser)


def steps(text: str) -> tuple[int, int]:
    """Steps that are written as 10:12, or 10 alone."""
    found = _RANGE.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if not 1 <= first <= last:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no range of steps from 1 on; write it as {_DEFAULT_STEPS}"
        )
    return first, last


_COMMAND = "ferry profile"
_KEPT = Text(
    "what was there is kept as {path}: it holds things that no profile has written",
    "原有内容保留为 {path}：其中有并非由 profile 写出的内容",
)


_PROFILING = Text("profiling", "正在采集性能数据")


def run(args: argparse.Namespace) -> int:
    """Profile a program; the answer is an exit code."""
    from torchferry.accuracy.record.launching import build_for
    from torchferry.launch.supervise import stop_if_told
    from torchferry.perf.collect.launching import check_output, nothing_profiled, run_profiled
    from torchferry.perf.collect.settings import ProfileSettings, sentences

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    output = Path(os.path.abspath(args.output))
    check_output(output)
    say_if_simulated(args, _COMMAND, place)
    build_for(place, args.quiet)
    first, last = args.steps
    settings = ProfileSettings(
        "",
        first,
        last,
        args.warmup,
        stacks=not args.no_stacks,
        shapes=not args.no_shapes,
        memory=not args.no_memory,
        keep_running=args.keep_running,
        seed=args.seed,
    )
    with beside_program(_PROFILING, args.quiet, options.language_of(args)):
        profiled = run_profiled(program, settings, place, output, args.timeout)
    code = profiled.ending.exit_code
    if profiled.is_written:
        say(args, _COMMAND, *sentences(output, settings, profiled.traces, code))
    if profiled.kept:
        say(args, _COMMAND, _KEPT.format(path=profiled.kept))
    stop_if_told(profiled.ending, f"interrupted; {output} is complete" if profiled.is_written else "")
    if not profiled.is_written:
        raise RunError(nothing_profiled(program, settings, profiled))
    is_whole = all(each.last_step >= last for each in profiled.traces)
    # what the early end of a process does to the program is not its fault
    return 3 if code and (settings.keep_running or not is_whole) else 0

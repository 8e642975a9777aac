"""Find the first operator of a program that makes infinities or NaN of finite inputs, and keep its data."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import interrupted, say, write
from torchferry.cli.program import add_place, add_program, place_of, program_of
from torchferry.errors import FerryError

if TYPE_CHECKING:
    from torchferry.accuracy.overflow.launching import Checked
    from torchferry.accuracy.overflow.model import OverflowEvent
    from torchferry.accuracy.record.settings import OverflowSettings

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
    add_program(parser)
    _add_what(parser)
    _add_results(parser)
    add_place(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is checked")
    options.add_steps(
        group,
        "end the program after so many steps, those that a GradScaler skips not counted; `all`: let it run to its end "
        "(default: 1)",
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
    options.add_switch(
        group,
        "--whole",
        "check from `import torch` on, set-up included: for programs that call no module, or whose data has NaN "
        "(default: from the first call of a module with parameters)",
    )
    options.add_switch(
        group, "--keep-going", "do not end the program at the first overflow; note the others, too"
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is told")
    group.add_argument(
        "--last",
        type=options.at_least_one,
        default=_LAST,
        metavar="N",
        help=f"operators before the overflow that are listed, with figures of their tensors (default: {_LAST})",
    )
    options.add_output(
        group,
        None,
        "the record with the inputs of the operator as they were before the call, written if there is an "
        f"overflow (default: {DEFAULT_OUTPUT}); named here, and with --to, a test of the operator is written beside "
        "it. With several processes FILE.rank0.h5 ...",
    )
    options.add_format(group, ("text", "json"))


_COMMAND = "ferry overflow"
_FOUND, _SOME_FAILED = 1, 3


def run(args: argparse.Namespace) -> int:
    """Check a program; the answer is an exit code."""
    from torchferry.accuracy.overflow.launching import run_checked
    from torchferry.accuracy.record.launching import build_for
    from torchferry.accuracy.record.outputs import noted

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    settings = _settings(args)
    note = build_for(place, args.quiet)
    for sentence in noted([note] if note else []):
        say(args, _COMMAND, sentence)
    checked = run_checked(program, settings, place, args.timeout)
    case = _case(args, checked)
    if checked.processes:
        _report(args, checked, case)
    if checked.ending.signal:
        interrupted(
            checked.ending.signal,
            "interrupted; what was found until then is above" if checked.processes else "",
        )
    return _FOUND if checked.first is not None else _SOME_FAILED if checked.failed else 0


def _settings(args: argparse.Namespace) -> OverflowSettings:
    from torchferry.accuracy.record.launching import check_output
    from torchferry.accuracy.record.settings import OverflowSettings

    output = Path(args.output or DEFAULT_OUTPUT).absolute()
    for earlier in check_output(output):  # it would be taken for the result of this run
        Path(earlier).unlink(missing_ok=True)
    return OverflowSettings(
        str(output),
        steps=None,
        whole=args.whole,
        keep_going=args.keep_going,
        seed=args.seed,
        updates=args.steps,
        last=args.last,
        half=args.half,
        strict=args.strict,
    )


def _case(args: argparse.Namespace, checked: Checked) -> str:
    """The file of a test of the operator, if one was asked for and can be made."""
    if checked.first is None or args.output is None or not args.to:
        return ""
    event = checked.first[1]
    return _written_case(args, event) if event.record else ""


def _written_case(args: argparse.Namespace, event: OverflowEvent) -> str:
    from torchferry.accuracy.model import group_name
    from torchferry.cli.main import run_command

    file = Path(event.record).with_name(f"test_{group_name(event.call.operator)}.py")
    words = ["--to", args.to, "--from", event.record, "--no-run", "--force", "--quiet", "-o", str(file)]
    words += [word for path in args.vendor_path for word in ("--vendor-path", str(path))]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run_command("case", [event.call.operator, *words])
    except FerryError as error:
        print(f"{_COMMAND}: no test was written: {error}", file=sys.stderr)
        return ""
    return os.path.relpath(file)


def _report(args: argparse.Namespace, checked: Checked, case: str) -> None:
    from torchferry.accuracy.overflow.report import to_json, to_text

    vendor = args.to or ""
    language = options.language_of(args)
    text = (
        to_json(checked, vendor, case) if args.format == "json" else to_text(checked, language, vendor, case)
    )
    write(text)

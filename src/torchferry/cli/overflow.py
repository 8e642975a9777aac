"""Find the first operator of a program that makes infinities or NaN of finite inputs, and keep its data."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import say, write
from torchferry.cli.program import add_place, add_program, place_of, program_of
from torchferry.errors import FerryError
from torchferry.report.progress import beside_program
from torchferry.text import Text

DEFAULT_OUTPUT = "overflow.h5"
_LAST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry overflow`."""
    parser.usage = "ferry overflow [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.epilog = (
        "Exit code 1: an overflow was found; 0: none; 3: the program failed before its end. An infinity that comes "
        "from a number in the program (masked_fill with -inf, a causal mask) or from an input that has it already is "
        "passed on, not made. Overflows of scaled gradients that a GradScaler then skips are normal, and only noted. "
        "torch.compile is switched off, so that every operator shows."
    )
    add_program(parser)
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
    add_place(parser)


_COMMAND = "ferry overflow"


_CHECKING = Text("checking every operator", "正在检查每个算子")


def run(args: argparse.Namespace) -> int:
    """Check a program; the answer is an exit code."""
    from torchferry.accuracy.overflow.launching import run_checked
    from torchferry.accuracy.overflow.report import to_json, to_text
    from torchferry.accuracy.record.launching import build_for, check_output
    from torchferry.accuracy.record.outputs import noted
    from torchferry.accuracy.record.settings import OverflowSettings
    from torchferry.launch.supervise import stop_if_told

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    output = Path(args.output or DEFAULT_OUTPUT).absolute()
    for earlier in check_output(output):  # it would be taken for the result of this run
        Path(earlier).unlink(missing_ok=True)
    settings = OverflowSettings(
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
    say(args, _COMMAND, *noted(filter(None, [build_for(place, args.quiet)])))
    with beside_program(_CHECKING, args.quiet, options.language_of(args)):
        checked = run_checked(program, settings, place, args.timeout)
    event = None if checked.first is None else checked.first[1]
    is_case_wanted = event is not None and event.record and args.output is not None and args.to
    case = _written_case(args, event.record, event.call.operator) if event and is_case_wanted else ""
    if checked.processes:
        vendor, language = args.to or "", options.language_of(args)
        is_json = args.format == "json"
        write(to_json(checked, vendor, case) if is_json else to_text(checked, language, vendor, case))
    stop_if_told(
        checked.ending, "interrupted; what was found until then is above" if checked.processes else ""
    )
    return 1 if event is not None else 3 if checked.failed else 0


def _written_case(args: argparse.Namespace, record: str, operator: str) -> str:
    """The file of a test of the operator, "" if none can be made."""
    from torchferry.accuracy.model import group_name
    from torchferry.cli.main import run_command

    file = Path(record).with_name(f"test_{group_name(operator)}.py")
    words = ["--to", args.to, "--from", record, "--no-run", "--force", "--quiet", "-o", str(file)]
    words += [word for path in args.vendor_path for word in ("--vendor-path", str(path))]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            run_command("case", [operator, *words])
    except FerryError as error:
        print(f"{_COMMAND}: no test was written: {error.shown}", file=sys.stderr)
        return ""
    return os.path.relpath(file)

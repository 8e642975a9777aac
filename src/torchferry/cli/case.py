"""Write a test of one operator, the device against the CPU, run it, and find the smallest inputs that fail."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import need
from torchferry.errors import InputError, OutputError, RunError
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.readiness.cases.bench import Bench
    from torchferry.readiness.cases.model import Case, CaseOutcome, TimedCall, TrialFacts
    from torchferry.readiness.cases.times import OtherTimes
    from torchferry.readiness.cases.writing import FileFrame
    from torchferry.vendors.model import Vendor

_SECONDS = 120.0
_seed = options.whole_number(0, (1 << 63) - 1)  # of a torch.Generator

_NOTATION = """how --input is written:
  SHAPE[:DTYPE][:DISTRIBUTION][:LAYOUT]   a tensor, as in 10x20:int64 or 8x3x32x32:float16:normal:channels_last
    SHAPE         10x20; 10x or 10:float32 for one dimension; scalar for none
    DTYPE         any of torch's: float32 (default), bfloat16, bool, complex64, int8 ...
    DISTRIBUTION  normal, uniform(0,1), ints(0,10), ones, zeros, full(2.5), arange, nan, inf; +nan, +inf, +-inf
                  puts such values among others: normal+nan. Default: what suits the operator and the dtype
    LAYOUT        transposed, channels_last, channels_last_3d, expanded, sliced, strides(1,20), offset(3)
  2.5, [2,2], True, None, float16, 'sum'   a Python value; a single number is a number, not a shape
  list(2x3, 2x3)                           a list of tensors
  NAME=...                                 an argument by name, as in dim=1

examples:
  ferry case torch.max --input 10x20:int64 --to ascend
  ferry case aten::gelu --from npu.h5 --call 12 --to ascend --shrink
  ferry case torch.nn.functional.silu --input 16x559x2816:bfloat16 --to ascend --time --times-of gpu_trace.json.gz
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry case`."""
    parser.usage = (
        'ferry case OPERATOR --to VENDOR [--input "10x20:int64" ...] [OPTIONS]\n'
        "       ferry case OPERATOR --to VENDOR --from FILE [--call N] [OPTIONS]\n"
        "       ferry case [OPERATOR] --from FILE --list"
    )
    parser.epilog = _NOTATION
    parser.add_argument(
        "operator",
        nargs="?",
        default="",
        metavar="OPERATOR",
        help="aten::max.dim, max, torch.max, torch.nn.functional.gelu, Tensor.scatter_, torch.nn.Conv2d, or a module "
        "or function of your own: package.module:Class or file.py:Class",
    )
    options.add_to(parser)
    options.add_vendor_path(parser)
    group = parser.add_argument_group("what it is called with")
    group.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="INPUT",
        help="one argument (see below); repeat in order",
    )
    group.add_argument(
        "--init",
        default="",
        metavar="ARGUMENTS",
        help="of a module: in_channels=16,out_channels=32,kernel_size=3",
    )
    group.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="take the arguments from a record of operators (HDF5: with their contents) or from a capture of "
        "`ferry ops` (JSON: contents are made up); --input NAME=... changes one",
    )
    group.add_argument(
        "--call",
        type=options.at_least_one,
        metavar="N",
        help="which call of FILE: its number in a record, as `ferry compare` names it, or its place among those of a "
        "capture; --list shows them (default: the first)",
    )
    group.add_argument(
        "--site",
        default="",
        metavar="TEXT",
        help="of a capture: only calls whose line or module has this in it",
    )
    options.add_switch(group, "--list", "list the calls of FILE, and do nothing else")
    group.add_argument("--seed", type=_seed, default=0, metavar="N", help="of random contents (default: 0)")
    group.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that the case imports once the device is there, as one that registers an operator",
    )
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the test's file (default: test_OPERATOR.py); - prints it",
    )
    options.add_switch(group, "--force", "replace FILE if it exists")
    group.add_argument(
        "--style",
        choices=("pytest", "unittest"),
        default="pytest",
        help="functions for pytest (default), or a TestCase with cpu_op_exec and <device>_op_exec that `python FILE` "
        "runs",
    )
    options.add_switch(group, "--forward-only", "do not test gradients")
    group = parser.add_argument_group("running it")
    options.add_switch(group, "--no-run", "only write it; the CPU tries the call nevertheless")
    options.add_emulate(
        group,
        "run it on the vendor's own plugin, on an emulated device, wherever the real one is; `ferry emulate setup` sets "
        "it up",
    )
    options.add_check(group, "the case fails")
    options.add_switch(
        group,
        "--time",
        "measure one call, forward and backward, on the device, the CPU and a GPU of this machine, in turns; the test "
        "gets a part that prints the time",
    )
    group.add_argument(
        "--save-times", type=Path, metavar="FILE", help="with --time: write what was measured to a JSON file"
    )
    group.add_argument(
        "--times-of",
        type=Path,
        metavar="FILE",
        help="with --time: compare with another machine, as one with a GPU: such a file, a profiler's trace of a run there, "
        "or what `ferry record kernels --format json` made of one",
    )
    options.add_switch(
        group, "--shrink", "if it fails, write the case with the smallest arguments that fail in the same way"
    )
    options.add_timeout(group, f"a run that takes longer has failed (default: {_SECONDS:g})", _SECONDS)
    options.add_quiet(group)
    options.add_language(parser)


_STDOUT = "-"


def run(args: argparse.Namespace) -> int:
    """Write the case, run it, say how it came out."""
    if args.source is not None and not args.source.is_file():
        raise InputError(f"{args.source}: no such file; --from takes a record of operators or a capture")
    if args.list:
        return _list(args)
    if not args.operator or not args.to:
        raise RunError("which operator, for which device? ferry case OPERATOR --to VENDOR")
    if (args.save_times or args.times_of) and not args.time:
        raise RunError("--save-times and --times-of go with --time")
    vendor = get_vendor(args.to, args.vendor_path)
    need("a case calls operators of", "torch")
    from torchferry.readiness.cases.bench import BenchSetting, bench_for, outcome_sentence
    from torchferry.readiness.cases.model import CaseVerdict, TrialFacts
    from torchferry.readiness.cases.notation import described_call
    from torchferry.readiness.cases.writing import write_case

    other = _other_times(args)
    case, frame = _prepared(args, vendor)
    setting = BenchSetting(
        vendor, options.vendor_paths(args), emulate=args.emulate, is_run=not args.no_run, is_quiet=args.quiet
    )
    with (
        bench_for(setting, args.timeout) as bench,
        tempfile.TemporaryDirectory(prefix="torchferry-case-") as scratch,
    ):
        facts = bench.probe(write_case(case, TrialFacts(), frame, Path(scratch) / "test_probe.py"))
        if facts.error:
            raise InputError(f"{described_call(case)}: the CPU refuses it: {facts.error}")
        facts = replace(facts, uninitialised=case.callee.returns_raw_memory)
        file = _write(args, case, facts, frame, Path(scratch))
        if args.no_run:
            return 0
        try:
            outcome = bench.run(file)
            _say(args, outcome_sentence(outcome, vendor.name))
            if args.time:
                _time(args, bench, file, other)
            if args.shrink:
                _shrink(args, case, facts, frame, outcome, bench, Path(scratch), vendor)
        except KeyboardInterrupt as stop:  # the file is there already
            stop.args = ("interrupted" if args.output == _STDOUT else f"interrupted; {file} stays as it is",)
            raise
    if not args.check:
        return 0
    if outcome.kind in (CaseVerdict.NO_DEVICE, CaseVerdict.INVALID):
        return 2
    return int(outcome.kind.is_failure)


def _time(args: argparse.Namespace, bench: Bench, file: Path, other: OtherTimes | None) -> None:
    import json

    from torchferry.files.aside import write_whole
    from torchferry.readiness.cases.times import other_sentences, roofline_sentences, time_sentences

    times = bench.time(file)
    if args.emulate:
        times = replace(times, simulated=True, names={}, by_events=[])
    _say(args, *time_sentences(times))
    if times.error:
        return
    _say(args, *roofline_sentences(times, _least_seconds))
    if other is not None:
        _say(args, *other_sentences(times, other, str(args.times_of)))
    if args.save_times is not None:
        data = {
            "format": "torchferry-times",
            "operator": args.operator,
            "simulated": times.simulated,
            "seconds": {name: list(each) for name, each in times.seconds.items()},
            "backward": {name: list(each) for name, each in times.backward.items()},
        }
        write_whole(args.save_times, (json.dumps(data, indent=1) + "\n").encode())


def _other_times(args: argparse.Namespace) -> OtherTimes | None:
    """Those of another machine, looked at before the work."""
    from torchferry import traces
    from torchferry.readiness.cases.times import read_other

    if args.times_of is None:
        return None
    need("traces are read with", *traces.LIBRARIES)
    return read_other(args.times_of)


def _least_seconds(device: str, calls: Sequence[TimedCall]) -> float | None:
    """The least time in which a device can do some operators; None where that is not known of one that works."""
    from torchferry.operators.names import is_plumbing
    from torchferry.perf.roofline import LEAST_CALL, peaks_of, work_of
    from torchferry.traces.model import TraceSignature

    peaks, total = peaks_of(device), 0.0
    for call in calls:
        work = work_of(call.operator, TraceSignature(call.dims, call.types, call.strides, call.concrete))
        least = None if peaks is None or work is None else peaks.least_seconds(work)
        if least is not None:
            total += max(least, LEAST_CALL)
        elif not is_plumbing(call.operator):
            return None
    return total or None


def _list(args: argparse.Namespace) -> int:
    from torchferry.accuracy import case_inputs
    from torchferry.readiness.cases.building import listed
    from torchferry.report.safe import one_line
    from torchferry.report.streams import reader_may_leave

    need("a case calls operators of", "torch")
    if args.source is None:
        raise RunError("--list lists the calls of a file: ferry case [OPERATOR] --from FILE --list")
    lines = listed(args.source, args.operator, args.site, case_inputs)
    if not lines:
        raise InputError(f"{args.source}: has no call{' of ' + args.operator if args.operator else ''}")
    with reader_may_leave():
        print("\n".join(map(one_line, lines)))
    return 0


def _prepared(args: argparse.Namespace, vendor: Vendor) -> tuple[Case, FileFrame]:
    """The case, and what its file is made with; that it can be written is looked at before the work."""
    from torchferry.accuracy import case_inputs
    from torchferry.readiness.cases.building import CaseRequest, build
    from torchferry.readiness.cases.writing import (
        FileFrame,
        data_name,
        kept_tensors,
        platforms_for,
        short_name,
    )

    request = CaseRequest(
        args.operator,
        tuple(args.input),
        args.source,
        args.call,
        args.site,
        args.init,
        args.seed,
        tuple(args.modules),
    )
    case = build(request, case_inputs)
    target, platforms = platforms_for(vendor)
    frame = FileFrame(
        target=target,
        platforms=platforms,
        style=args.style,
        modules=tuple(args.modules),
        vendor_paths=options.vendor_paths(args),
        forward_only=args.forward_only,
        command=shlex.join(["ferry", *sys.argv[1:]]),
        file_name=f"test_{short_name(case)}.py" if args.output in (None, _STDOUT) else args.output,
        timed=args.time,
    )
    if args.output == _STDOUT:
        if kept_tensors(case):
            raise OutputError("recorded tensors lie in a file beside the test; name one with -o FILE")
        return case, frame
    path = Path(frame.file_name)
    if path.suffix != ".py":
        raise OutputError(f"{path}: a test's file ends in .py")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: there is no folder {path.parent}")
    for each in (path, path.with_name(data_name(path.name))):
        if each.is_dir() or (os.path.lexists(each) and not args.force):
            raise OutputError(f"{each}: exists already; --force replaces it, -o FILE names another")
    return case, frame


def _write(args: argparse.Namespace, case: Case, facts: TrialFacts, frame: FileFrame, scratch: Path) -> Path:
    from torchferry.readiness.cases.bench import WROTE, WROTE_WITH_DATA
    from torchferry.readiness.cases.writing import data_name, kept_tensors, render, write_case
    from torchferry.report.streams import reader_may_leave

    if args.output == _STDOUT:
        if not args.shrink:
            with reader_may_leave():
                print(render(case, facts, frame), end="")
        return write_case(case, facts, frame, scratch / "test_case.py")
    file = write_case(case, facts, frame, Path(frame.file_name))
    said = WROTE_WITH_DATA if kept_tensors(case) else WROTE
    _say(args, said.format(file=file, data=file.with_name(data_name(file.name))))
    return file


_SHRINKING = Text("looking for the smallest call that fails", "正在寻找仍会出错的最小调用")


def _shrink(
    args: argparse.Namespace,
    case: Case,
    facts: TrialFacts,
    frame: FileFrame,
    outcome: CaseOutcome,
    bench: Bench,
    scratch: Path,
    vendor: Vendor,
) -> None:
    from torchferry.readiness.cases.bench import (
        NOT_FINISHED,
        NOT_STEADY,
        NOTHING_TO_SHRINK,
        SHRUNK,
        outcome_sentence,
    )
    from torchferry.readiness.cases.model import CaseVerdict
    from torchferry.readiness.cases.notation import described_call
    from torchferry.readiness.cases.shrinking import shrink
    from torchferry.readiness.cases.writing import write_case
    from torchferry.report.progress import Counted, long_task
    from torchferry.report.safe import shortened

    if not outcome.kind.is_failure:
        _say(args, NOTHING_TO_SHRINK)
        return
    trial_frame = replace(frame, forward_only=frame.forward_only or not outcome.check.endswith("backward"))
    with long_task(_SHRINKING, args.quiet, Counted.TRIALS, options.language_of(args)) as task:

        def show(trials: int, each: Case) -> None:
            if task is not None:
                task(trials, 0, shortened(described_call(each), 70))

        found = shrink(
            case,
            outcome,
            lambda each: bench.try_out(
                write_case(each, facts, trial_frame, scratch / "test_trial.py"),
                is_patient=outcome.kind is not CaseVerdict.HANGS,
            ),
            show,
        )
    said = SHRUNK.format(trials=found.trials, call=described_call(found.case))
    if not found.complete:
        rest = NOT_FINISHED.format(trials=found.trials)
        said = Text(said.en + rest.en, said.zh + rest.zh)
    _say(args, said)
    _say(args, outcome_sentence(found.outcome, vendor.name))
    if not found.steady:
        _say(args, NOT_STEADY)
    _write(argparse.Namespace(**{**vars(args), "shrink": False}), found.case, facts, frame, scratch)


def _say(args: argparse.Namespace, *texts: Text) -> None:
    """On stderr where stdout is the file's."""
    from torchferry.report.streams import reader_may_leave

    stream, language = sys.stderr if args.output == _STDOUT else sys.stdout, options.language_of(args)
    with reader_may_leave():
        for text in texts:
            print(text.in_language(language), file=stream, flush=True)

"""Record what every operator of a program is given and makes of it, for a step or several, in one HDF5 file."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.accuracy.kernels import FORMATS, kernel_report, recorded_report
from torchferry.cli import options
from torchferry.cli.output import need, say, write
from torchferry.cli.program import add_place, add_program, place_of, program_of, say_if_simulated
from torchferry.errors import OutputError, RunError
from torchferry.report.progress import Counted, beside_program, long_task
from torchferry.report.streams import reader_may_leave
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.cutting import CutRequest
    from torchferry.accuracy.file.reader import Record

DEFAULT_OUTPUT = "record.h5"

_INFO, _CONVERT, _KERNELS, _CUT = "info", "convert", "kernels", "cut"
_COMMAND = "ferry record"
_SLICE_OVER = "64MB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry record`."""
    parser.usage = (
        "ferry record [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry record info FILE\n"
        "       ferry record convert FILE (--npy DIR | --txt DIR | --msprobe DIR | -o RECORD)\n"
        "       ferry record cut FILE --call N [-o FILE]\n"
        "       ferry record kernels TRACE [--of FILE]"
    )
    parser.epilog = (
        "Two records can be compared if both runs had the same data, weights and random numbers: a program that sets "
        "no seed itself needs --seed. torch.compile is switched off, so that every operator shows. `info`, "
        "`convert`, `cut` and `kernels` come first; a script of that name is run as ./info, or after --."
    )
    add_program(parser)
    kept = parser.add_mutually_exclusive_group()
    options.add_switch(
        kept,
        "--tensors",
        "keep the elements of every tensor, equal ones once: what `ferry compare` and `ferry replay` need "
        "(default)",
    )
    options.add_switch(
        kept, "--stats", "keep statistics and a checksum of each tensor: small and quick, for many steps"
    )
    options.add_switch(kept, "--inputs", "keep the elements of inputs, and statistics of outputs")
    group = parser.add_argument_group("what is recorded")
    options.add_steps(
        group,
        "end the program after so many steps, those that a GradScaler skips included; a step ends when each "
        "optimizer has stepped, or one of them would step again. `all`: let it run to its end (default: 1)",
    )
    group.add_argument(
        "--from",
        dest="first_step",
        type=options.at_least_one,
        default=1,
        metavar="STEP",
        help="the first step that is recorded (default: 1)",
    )
    options.add_switch(
        group,
        "--whole",
        "record from `import torch` on, set-up included: for programs that call no module (default: from the "
        "first call of a module with parameters)",
    )
    options.add_every(group, "record the first of the steps and each N-th (default: 1, all of them)", 1)
    options.add_selection(group)
    options.add_switch(
        group,
        "--modules-only",
        "record what modules are given and answer, and the gradients of that, in the place of operators: quick and "
        "small; `ferry compare` then says which module to look into",
    )
    group.add_argument(
        "--rank",
        type=options.whole_number(0),
        metavar="R",
        help="only the process of this rank (default: all)",
    )
    group.add_argument(
        "--slice",
        dest="slices",
        type=options.at_least_one,
        default=0,
        metavar="N",
        help="of large tensors keep N slices, evenly spaced along the first dimension that has more, with the "
        "statistics of all elements",
    )
    group.add_argument(
        "--slice-over",
        type=options.size,
        metavar="SIZE",
        help=f"with --slice: which tensors are large (default: {_SLICE_OVER})",
    )
    group.add_argument(
        "--limit",
        type=options.size,
        metavar="SIZE",
        help="so much of the disk, as 50GB, that all processes of a machine may take together; then the record ends, and "
        "the program goes on (default: until 1 GiB of the disk is left)",
    )
    options.add_switch(group, "--keep-going", "let the program go on, unrecorded, after the last step")
    options.add_output(
        parser,
        DEFAULT_OUTPUT,
        "the record; with several processes each writes its own: FILE.rank0.h5, FILE.rank1.h5 ... A record of "
        f"an earlier run of that name is replaced (default: {DEFAULT_OUTPUT})",
    )
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="GOLDEN",
        help="give each operator the inputs that it had in this record, and record what it makes of them here: own "
        "errors, none that are inherited",
    )
    add_place(parser)


def run(args: argparse.Namespace) -> int:
    """Record a program, or look into a record; the answer is an exit code."""
    verb = "" if args.is_module else next(iter(args.program), "")
    if verb in (_INFO, _CONVERT):
        return run_files(verb, args.program[1:])
    if verb == _KERNELS:
        return run_kernels(args.program[1:])
    if verb == _CUT:
        return run_cut(args.program[1:])
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import build_for, check_output, nothing_recorded, run_recorded
    from torchferry.accuracy.record.outputs import noted, sentences
    from torchferry.accuracy.record.settings import RecordSettings
    from torchferry.launch.supervise import stop_if_told

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    output = Path(args.output).absolute()
    if args.whole and args.first_step > 1:
        raise RunError("--whole and --from: only one of them at a time; leave one out")
    if args.modules_only and (args.operators or args.replay):
        other = "--op" if args.operators else "--replay"
        raise RunError(f"--modules-only and {other}: modules have no operators; leave one out")
    if args.slice_over and not args.slices:
        raise RunError(
            "--slice-over: says which tensors are cut into slices; say how many to keep with --slice N"
        )
    settings = RecordSettings(
        str(output),
        kept=Kept.STATISTICS if args.stats else Kept.INPUTS if args.inputs else Kept.TENSORS,
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
        every=args.every,
        modules_only=args.modules_only,
        slices=args.slices,
        slice_over=args.slice_over or options.size(_SLICE_OVER),
        limit=args.limit,
        replaced=check_output(output),
    )
    say_if_simulated(args, _COMMAND, place)
    note = build_for(place, args.quiet, settings.kept)
    written = partial(_bytes_written, output)
    with beside_program(_RECORDING, args.quiet, options.language_of(args), written):
        recorded = run_recorded(program, settings, place, args.timeout)
    outcomes = [outcome for outcome, _ in recorded.files]
    for outcome, was_repaired in recorded.files:
        say(args, _COMMAND, *sentences(outcome, was_repaired, settings.steps))
    say(args, _COMMAND, *noted(filter(None, [note])))
    ending = recorded.ending
    stop_if_told(ending, "interrupted; what was recorded until then is kept" if outcomes else "")
    if not outcomes:
        raise RunError(nothing_recorded(program, settings, recorded))
    is_early = any(outcome.problem or not outcome.is_over for outcome in outcomes)
    if not any(outcome.calls for outcome in outcomes) and not ending.exit_code and not is_early:
        raise RunError(
            f"{args.output}: holds no call: no operator of these steps fits --module, --op and --phase; "
            "`ferry record --stats` without them, then `ferry record info`, shows what there is"
        )
    if is_early:
        return 3
    # what the early end of a process does to the program is not its fault
    made_all = args.steps is not None and all(outcome.steps >= args.steps for outcome in outcomes)
    return 3 if ending.exit_code and (args.keep_going or not made_all) else 0


_RECORDING = Text("recording", "正在记录")


def _bytes_written(output: Path) -> tuple[int, int]:
    from torchferry.accuracy.record.outputs import files_of

    return sum(file.stat().st_size for file in files_of(output)), 0


def _golden(replay: Path, output: Path) -> Path:
    """The record to replay, looked at before the run: of one process, or the first rank's of several."""
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.record.outputs import files_of
    from torchferry.accuracy.replay.launching import check_replayable

    golden = replay.absolute()
    if {path.resolve() for path in files_of(output)} & {path.resolve() for path in files_of(golden)}:
        raise RunError(f"{replay}: is to be replayed and overwritten at once; name another file with -o")
    for record in open_records(golden):
        with record:
            check_replayable(record)
    return golden


# `ferry record info` and `ferry record convert`: what is in a record, and its tensors as files of their own.


_DESCRIPTIONS = {
    "info": "Say what a record holds: of which run, which steps, how often each operator was called.",
    _CONVERT: "Write the tensors of a record as files of their own: DIR/number_operator/input/name.npy or .txt; or a "
    "record in the form of msprobe's dumps, or a dump as a record.",
}


def run_files(verb: str, words: list[str]) -> int:
    """One of the two; the answer is an exit code."""
    parser = argparse.ArgumentParser(prog=f"{_COMMAND} {verb}", description=_DESCRIPTIONS[verb])
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="a record, with several ranks without .rank0; a file or folder of a runtime's own dump; a folder of msprobe's",
    )
    if verb == _CONVERT:
        kind = parser.add_mutually_exclusive_group(required=True)
        kind.add_argument(
            "--npy", type=Path, metavar="DIR", help="one .npy a tensor, to be read with numpy.load"
        )
        kind.add_argument("--txt", type=Path, metavar="DIR", help="one .txt a tensor, a number a line")
        kind.add_argument(
            "--msprobe",
            type=Path,
            metavar="DIR",
            help="the form of msprobe's dumps, which its `compare` reads: DIR/step0/rank0/dump.json",
        )
        kind.add_argument(
            "-o",
            "--output",
            type=Path,
            metavar="RECORD",
            help="one file, of a dump of another tool; several ranks: RECORD.rank0.h5 ...",
        )
        options.add_quiet(parser, "do not say what was written, and show no progress")
    args = parser.parse_args(words)
    return _convert(args) if verb == _CONVERT else _info(args)


def _info(args: argparse.Namespace) -> int:
    from torchferry.accuracy.file.reader import open_records

    with reader_may_leave():
        for record in open_records(args.file):
            with record:
                for line in _described(record):
                    print(line)
    return 0


def _described(record: Record) -> Iterator[str]:
    from torchferry.accuracy.model import kept_nbytes
    from torchferry.report.safe import one_line
    from torchferry.units import size

    header = record.header
    steps, phases, operators, raw = Counter[int](), Counter[str](), Counter[str](), 0
    for call in record.calls:
        steps[call.step] += 1
        phases[call.phase] += 1
        operators[call.operator] += 1
        raw += sum(map(kept_nbytes, (*call.inputs, *call.outputs)))
    simulated = " (simulated)" if header.simulated else ""
    facts = {
        "program": header.program,
        "options": header.options,
        "device": f"{header.device}{simulated}" + (f" of {header.vendor}" if header.vendor else ""),
        "torch": header.torch,
        "rank": f"{header.rank} of {header.world}",
        "keeps": header.kept.value + (" of modules" if header.modules_only else ""),
        "inputs of": header.replayed,
        "selected": header.selected,
        "in part": header.in_part,
        "complete": "yes" if header.complete else "no: its process was ended before it could end the file",
        "size": f"{size(record.size())}"
        + (f"; {size(raw)} if equal tensors were not written once" if raw else ""),
        "notes": "; ".join(header.notes),
    }
    yield f"{one_line(str(record.path))}: {len(record.calls):,} calls"
    yield from (f"  {name:<10} {one_line(value)}" for name, value in facts.items() if value)
    yield from (f"  step {step:<5} {count:,} calls" for step, count in sorted(steps.items()))
    yield from (f"  {one_line(phase) or '?':<10} {count:,} calls" for phase, count in phases.items())
    yield from (f"  {count:>8,}  {one_line(name)}" for name, count in operators.most_common())


_CONVERTING = Text("converting the recording", "正在转换记录")


def _convert(args: argparse.Namespace) -> int:
    if args.output is not None:
        return _rewrite(args)
    if args.msprobe is not None:
        from torchferry.accuracy.file.convert import convert_to_api_dump

        with long_task(_CONVERTING, args.quiet, Counted.CALLS) as show:
            count = convert_to_api_dump(args.file, args.msprobe, show)
        _tell(args, f"{args.msprobe}: {count:,} tensors")
        return 0
    from torchferry.accuracy.file.convert import Form, convert
    from torchferry.accuracy.file.reader import open_records

    folder, form = (args.npy, Form.NPY) if args.npy is not None else (args.txt, Form.TXT)
    records = open_records(args.file)
    if len(records) > 1 and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: is there already, and not empty; name another folder")
    count = 0
    for record in records:
        with record:
            place = folder / f"rank{record.header.rank}" if len(records) > 1 else folder
        with long_task(_CONVERTING, args.quiet, Counted.CALLS) as show:
            count += convert(record.path, place, form, show or _silent)
    _tell(args, f"{folder}: {count:,} tensors")
    return 0


def _silent(done: int, count: int) -> None:
    pass


def _tell(args: argparse.Namespace, said: str) -> None:
    if not args.quiet:
        print(f"{_COMMAND}: {said}", file=sys.stderr)


def _rewrite(args: argparse.Namespace) -> int:
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.file.rewriting import rewrite
    from torchferry.accuracy.record.launching import check_output

    output = args.output.absolute()
    check_output(output)
    records = open_records(args.file)
    with ExitStack() as stack:
        for record in records:
            stack.enter_context(record)
        for record in records:
            name = (
                f"{output.stem}.rank{record.header.rank}{output.suffix}" if len(records) > 1 else output.name
            )
            file = output.with_name(name)
            with long_task(_CONVERTING, args.quiet, Counted.CALLS) as show:
                count = rewrite(record, file, show)
            _tell(args, f"{args.output.with_name(name)}: {count:,} calls")
    return 0


# `ferry record cut`: some calls of a record as a record of their own.

_CUT_DESCRIPTION = """Write some calls of a record as a record of their own, with their contents, numbers and everything that is
known of them: small enough for an issue, and read by all commands."""
_CUT_EPILOG = """examples:
  ferry record cut npu.h5 --call 12 -o small.h5           the call that `ferry compare` names
  ferry record cut npu.h5 --call 12-20,31                 several, into npu.cut.h5
  ferry record cut npu.h5 --step 2 --module layer1.* --op "*norm*"

exit codes: 0 written; 2 bad usage, no such call, or the file can't be written; 130, 143 interrupted, nothing was written"""
_CUT_SAID = Text("{file}: {calls} of {of} calls, {nbytes}", "{file}：{of} 个调用中的 {calls} 个，{nbytes}")


def run_cut(words: list[str]) -> int:
    """Cut the records of all ranks; the answer is an exit code."""
    from torchferry.accuracy.cutting import check_cut_output, chosen_calls, cut
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.record.outputs import file_of
    from torchferry.units import size

    args = _cut_parser().parse_args(words)
    request, files = _cut_request(args), []
    output = args.output or args.file.with_name(f"{args.file.stem}.cut.h5")
    for record in open_records(args.file):
        with record:
            chosen_calls(record, request)
            files.append((record.path, file_of(output, record.header.rank, _world(args.file, record))))
    for _, target in files:
        check_cut_output(target, [source for source, _ in files])
    for source, target in files:
        done = cut(source, target, request)
        said = _CUT_SAID.format(
            file=target, calls=f"{done.calls:,}", of=f"{done.of:,}", nbytes=size(done.nbytes)
        )
        say(args, f"{_COMMAND} {_CUT}", said)
    return 0


def _world(file: Path, record: Record) -> int:
    """How many files stand for the one that was named: that of one rank is named by itself."""
    return 1 if file.exists() else max(record.header.world, 2)


def _cut_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"{_COMMAND} {_CUT}",
        description=_CUT_DESCRIPTION,
        epilog=_CUT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="a record, with several ranks without .rank0")
    numbers = "numbers of calls, as `ferry compare` and `ferry record info` count them: 12, 12-20 or 3,12-20"
    options.add_repeatable(parser, "--call", "N", numbers, type=options.number_ranges, dest="calls")
    options.add_repeatable(
        parser, "--step", "N", "only calls of these steps: 2 or 2-4", type=options.number_ranges, dest="steps"
    )
    options.add_selection(parser)
    options.add_output(parser, None, "the new record (default: FILE.cut.h5); an earlier record is replaced")
    options.add_quiet(parser, "do not say what was written")
    options.add_language(parser)
    return parser


def _cut_request(args: argparse.Namespace) -> CutRequest:
    from torchferry.accuracy.cutting import CutRequest
    from torchferry.accuracy.record.settings import Selection

    selection = Selection(tuple(args.modules), tuple(args.operators), tuple(args.phases))
    request = CutRequest(
        tuple(each for given in args.calls for each in given),
        tuple(each for given in args.steps for each in given),
        selection,
    )
    if request == CutRequest():
        raise RunError("which calls? Name some with --call N, or with --step, --module, --op or --phase")
    return request


# `ferry record kernels`: which kernels of a device the operators of a profiler's trace launched.

DESCRIPTION = (
    "Say which kernels of the device each operator launched, from a trace of torch.profiler or of a vendor's profiler "
    "(.json, .json.gz)."
)


def run_kernels(words: list[str]) -> int:
    """The answer is an exit code."""
    parser = argparse.ArgumentParser(prog="ferry record kernels", description=DESCRIPTION)
    parser.add_argument("trace", type=Path, metavar="TRACE", help="what the profiler wrote, of the same step")
    parser.add_argument("--op", default="", metavar="TEXT", help="only operators whose names contain this")
    parser.add_argument(
        "--of",
        type=Path,
        metavar="RECORD",
        help="list the calls of this record, each with its kernels: the n-th call of an operator with some shapes in "
        "a step is the n-th of the trace",
    )
    options.add_format(parser, FORMATS)
    options.add_language(parser)
    args = parser.parse_args(words)
    need("traces are read with", *traces.LIBRARIES)
    language = options.language_of(args)
    if args.of is None:
        report = kernel_report(args.trace, args.op, args.format, language)
    else:
        report = recorded_report(args.of, args.trace, args.op, args.format)
    write(report)
    return 0

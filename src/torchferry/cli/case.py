"""`ferry case`: a test of one operator, the device against the CPU; run, timed, and with the smallest inputs that fail."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Group, Parser, Section
from torchferry.cli.made import JSON, MadeFile, tell_made
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

_NOTATION = Section(
    Text("How --input is written", "--input 的写法"),
    (
        (
            "SHAPE[:DTYPE][:DISTRIBUTION][:LAYOUT]",
            Text(
                "A tensor: 10x20:int64 or 8x3x32x32:float16:normal:channels_last",
                "张量：10x20:int64 或 8x3x32x32:float16:normal:channels_last",
            ),
        ),
        (
            "SHAPE",
            Text(
                "10x20; 10x or 10:float32 for one dimension; scalar for none",
                "10x20；一维写 10x 或 10:float32；零维写 scalar",
            ),
        ),
        (
            "DTYPE",
            Text(
                "Any dtype of torch: float32 (default), bfloat16, bool, complex64, int8 ...",
                "torch 的任意数据类型：float32（默认）、bfloat16、bool、complex64、int8 等",
            ),
        ),
        (
            "DISTRIBUTION",
            Text(
                "normal, uniform(0,1), ints(0,10), ones, zeros, full(2.5), arange, nan, inf; +nan, +inf, +-inf mix such "
                "values in: normal+nan. Default: what suits the operator and the dtype",
                "normal、uniform(0,1)、ints(0,10)、ones、zeros、full(2.5)、arange、nan、inf；+nan、+inf、+-inf 表示混入此类值："
                "normal+nan。默认：适合该算子和数据类型的分布",
            ),
        ),
        (
            "LAYOUT",
            Text(
                "transposed, channels_last, channels_last_3d, expanded, sliced, strides(1,20), offset(3)",
                "布局：transposed、channels_last、channels_last_3d、expanded、sliced、strides(1,20)、offset(3)",
            ),
        ),
        (
            "2.5, [2,2], True, None, 'sum'",
            Text(
                "A Python value; a single number is a number, not a shape",
                "Python 值；单个数字是数值而非形状",
            ),
        ),
        ("list(2x3, 2x3)", Text("A list of tensors", "张量列表")),
        ("NAME=...", Text("An argument by name: dim=1", "按名称传入的参数：dim=1")),
    ),
)
ABOUT = About(
    Text(
        "Writes a test that compares an operator on the device with the CPU, forward and backward, and runs it. The "
        "arguments come from --input, from a recording or from a capture of `ferry ops`.",
        "编写测试，将算子在设备上的前向和反向结果与 CPU 比较，并运行。参数来自 --input、记录或 `ferry ops` 的采集结果。",
    ),
    (
        Example(
            "ferry case torch.max --input 10x20:int64 --to ascend",
            Text("Test an operator with a shape", "用某种形状测试算子"),
        ),
        Example(
            "ferry case aten::gelu --from npu.h5 --call 12 --to ascend --shrink",
            Text(
                "Test a recorded call, and find the smallest inputs that fail",
                "测试记录中的调用，并找出最小的失败输入",
            ),
        ),
        Example(
            "ferry case torch.nn.functional.silu --input 16x559x2816:bfloat16 --to ascend --time --times-of gpu_trace.json.gz",
            Text("Measure it, and compare with the time on a GPU", "计时，并与 GPU 上的用时比较"),
        ),
    ),
    usage=(
        'OPERATOR --to VENDOR [--input "10x20:int64" ...] [OPTIONS]',
        "OPERATOR --to VENDOR --from FILE [--call N] [OPTIONS]",
        "[OPERATOR] --from FILE --list",
    ),
    exit_codes=(
        ("1", Text("With --check: the test fails", "使用 --check 时：测试失败")),
        (
            "2",
            Text(
                "Wrong usage or wrong input; with --check also: there is no device, or the call is invalid",
                "用法或输入有误；使用 --check 时还包括：没有设备，或调用无效",
            ),
        ),
    ),
    sections=(_NOTATION,),
    page="how-to/cases.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry case`."""
    text = Text(
        "aten::max.dim, max, torch.max, torch.nn.functional.gelu, Tensor.scatter_, torch.nn.Conv2d, or your own module or "
        "function: package.module:Class or file.py:Class",
        "aten::max.dim、max、torch.max、torch.nn.functional.gelu、Tensor.scatter_、torch.nn.Conv2d，或自定义的模块或函数："
        "package.module:Class 或 file.py:Class",
    )
    parser.add("operator", nargs="?", default="", metavar="OPERATOR", text=text)
    options.add_to(parser)
    options.add_vendor_path(parser)
    _add_inputs(parser.group(Text("Its arguments", "算子参数")))
    _add_files(parser.group(Text("What is written", "写入内容")))
    _add_runs(parser.group(Text("Running it", "运行测试")))
    options.add_format(parser, options.SUMMARY_FORMATS)
    options.add_quiet(parser)
    options.add_language(parser)


def _add_inputs(group: Group) -> None:
    options.add_repeatable(
        group,
        "--input",
        "INPUT",
        Text("One argument (see below); in order", "一个参数（写法见下），按顺序给出"),
    )
    text = Text(
        "Arguments of a module: in_channels=16,out_channels=32,kernel_size=3",
        "模块的构造参数：in_channels=16,out_channels=32,kernel_size=3",
    )
    group.add("--init", default="", metavar="ARGUMENTS", text=text)
    text = Text(
        "Take the arguments from a recording (HDF5: with contents) or a capture of `ferry ops` (JSON: contents are made "
        "up); --input NAME=... changes one",
        "从记录（HDF5，含内容）或 `ferry ops` 的采集结果（JSON，内容自动生成）中取参数；--input NAME=... 可修改其中一个",
    )
    group.add("--from", dest="source", type=Path, metavar="FILE", text=text)
    text = Text(
        "Call of FILE: its number in a recording, as `ferry compare` names it, or its place in a capture; --list shows "
        "them (default: the first)",
        "FILE 中的调用：记录中的编号（与 `ferry compare` 一致）或采集结果中的序号；--list 可列出（默认：第一个）",
    )
    group.add("--call", type=options.at_least_one, metavar="N", text=text)
    text = Text(
        "Of a capture: only calls whose line or module contains TEXT",
        "采集结果中仅限代码行或模块包含 TEXT 的调用",
    )
    group.add("--site", default="", metavar="TEXT", text=text)
    options.add_switch(
        group, "--list", Text("List the calls of FILE, and do nothing else", "只列出 FILE 中的调用")
    )
    text = Text("Random seed for contents (default: 0)", "随机内容的种子（默认：0）")
    group.add("--seed", type=_seed, default=0, metavar="N", text=text)
    text = Text(
        "Module that the test imports once the device is there, for example one that registers an operator",
        "设备就绪后由测试导入的模块，例如注册算子的模块",
    )
    options.add_repeatable(group, "--import", "MODULE", text, dest="modules")


def _add_files(group: Group) -> None:
    text = Text(
        "File of the test (default: test_OPERATOR.py); - prints it",
        "测试文件（默认：test_OPERATOR.py）；- 表示输出到标准输出",
    )
    group.add("-o", "--output", metavar="FILE", text=text)
    options.add_force(group)
    text = Text(
        "Functions for pytest (default), or a unittest TestCase with cpu_op_exec and <device>_op_exec that `python "
        "FILE` runs",
        "pytest 函数（默认），或带 cpu_op_exec 和 <device>_op_exec、可用 `python FILE` 运行的 unittest TestCase",
    )
    group.add("--style", choices=("pytest", "unittest"), default="pytest", text=text)
    options.add_switch(group, "--forward-only", Text("Do not test gradients", "不测试梯度"))


def _add_runs(group: Group) -> None:
    options.add_switch(
        group,
        "--no-run",
        Text("Only write it; the CPU still tries the call", "只写不运行；CPU 仍会试调用一次"),
    )
    options.add_emulate(group)
    options.add_check(group, Text("the test fails", "测试失败"))
    text = Text(
        "Measure one call, forward and backward, on the device, the CPU and a GPU of this machine in turns; the test "
        "gets a part that prints the time",
        "在设备、CPU 和本机 GPU 上轮流测量一次调用的前向和反向用时；测试中会加入输出用时的部分",
    )
    options.add_switch(group, "--time", text)
    text = Text(
        "With --time: write the measured times to a JSON file", "配合 --time：将测得的用时写入 JSON 文件"
    )
    group.add("--save-times", type=Path, metavar="FILE", text=text)
    text = Text(
        "With --time: compare with another machine: such a file, a profiler's trace of a run there, or what `ferry "
        "record kernels --format json` made of one",
        "配合 --time：与另一台机器比较：此类文件、在那里采集的 trace，或 `ferry record kernels --format json` 的结果",
    )
    group.add("--times-of", type=Path, metavar="FILE", text=text)
    text = Text(
        "If it fails, write the test with the smallest arguments that fail in the same way",
        "测试失败时，写出以同样方式失败的最小参数的测试",
    )
    options.add_switch(group, "--shrink", text)
    text = Text(
        "Count a run that takes longer as failed (default: {seconds})",
        "超过该秒数的运行视为失败（默认：{seconds}）",
    )
    options.add_timeout(group, text.format(seconds=f"{_SECONDS:g}"), _SECONDS)


_STDOUT = "-"


def run(args: argparse.Namespace) -> int:
    """Write the case, run it, say how it came out."""
    if args.source is not None and not args.source.is_file():
        raise InputError(
            Text(
                f"no such file: {args.source}; --from takes a recording of operators or a capture",
                f"没有该文件：{args.source}；--from 接受算子记录或采集结果",
            )
        )
    if args.list:
        return _list(args)
    if not args.operator or not args.to:
        raise RunError(
            Text(
                "which operator, for which device? ferry case OPERATOR --to VENDOR",
                "哪个算子、哪种设备？ferry case OPERATOR --to VENDOR",
            )
        )
    if (args.save_times or args.times_of) and not args.time:
        raise RunError(
            Text("--save-times and --times-of need --time", "--save-times 和 --times-of 需与 --time 一起使用")
        )
    vendor = get_vendor(args.to, args.vendor_path)
    need("torch", "torch")
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
            raise InputError(
                Text(
                    f"{described_call(case)}: the CPU refuses it: {facts.error}",
                    f"{described_call(case)}：CPU 拒绝执行：{facts.error}",
                )
            )
        facts = replace(facts, uninitialised=case.callee.returns_raw_memory)
        file = _write(args, case, facts, frame, Path(scratch))
        if args.no_run:
            return tell_made(args, "case", 0, [MadeFile(str(file))], vendor=vendor.name)
        try:
            with _testing(args):
                outcome = bench.run(file)
            _say(args, outcome_sentence(outcome, vendor.name))
            if args.time:
                _time(args, bench, file, other)
            if args.shrink:
                _shrink(args, case, facts, frame, outcome, bench, Path(scratch), vendor)
        except KeyboardInterrupt as stop:  # the file is there already
            said = _STOPPED if args.output == _STDOUT else _STOPPED_WITH_FILE.format(file=file)
            stop.args = (said.in_language(options.language_of(args)),)
            raise
    code = int(args.check and outcome.kind.is_failure)
    if args.check and outcome.kind in (CaseVerdict.NO_DEVICE, CaseVerdict.INVALID):
        code = 2
    device = "simulated" if outcome.simulated else "real"
    verdict = {"verdict": outcome.kind.value, "said": outcome.message}
    return tell_made(args, "case", code, [MadeFile(str(file))], vendor=vendor.name, device=device, **verdict)


_TESTING = Text("testing the operator", "正在测试算子")


def _testing(args: argparse.Namespace) -> AbstractContextManager[object]:
    from torchferry.report.progress import long_task

    return long_task(_TESTING, args.quiet, language=options.language_of(args))


def _time(args: argparse.Namespace, bench: Bench, file: Path, other: OtherTimes | None) -> None:
    import json

    from torchferry.files.aside import write_whole
    from torchferry.readiness.cases.times import other_sentences, roofline_sentences, time_sentences

    with _testing(args):
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
    need(traces.EXTRA, *traces.LIBRARIES)
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

    need("torch", "torch")
    if args.source is None:
        raise RunError(
            Text(
                "--list lists the calls of a file: ferry case [OPERATOR] --from FILE --list",
                "--list 列出文件中的调用：ferry case [OPERATOR] --from FILE --list",
            )
        )
    lines = listed(args.source, args.operator, args.site, case_inputs)
    if not lines:
        raise InputError(
            Text(
                f"{args.source}: has no call{' of ' + args.operator if args.operator else ''}",
                f"{args.source}：没有{' ' + args.operator + ' 的' if args.operator else ''}调用",
            )
        )
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
            raise OutputError(
                Text(
                    "recorded tensors are kept in a file beside the test; name one with -o FILE",
                    "记录的张量保存在测试旁边的文件中；请用 -o FILE 指定",
                )
            )
        return case, frame
    path = Path(frame.file_name)
    if path.suffix != ".py":
        raise OutputError(Text(f"{path}: a test's file ends in .py", f"{path}：测试文件名须以 .py 结尾"))
    if not path.parent.is_dir():
        raise OutputError(Text(f"{path}: no such folder: {path.parent}", f"{path}：没有文件夹 {path.parent}"))
    for each in (path, path.with_name(data_name(path.name))):
        if each.is_dir() or (os.path.lexists(each) and not args.force):
            raise OutputError(
                Text(
                    f"{each}: exists already; --force replaces it, -o FILE names another",
                    f"{each}：已存在；--force 可覆盖，-o FILE 可另外指定",
                )
            )
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


_STOPPED = Text("interrupted", "已中断")
_STOPPED_WITH_FILE = Text("interrupted; {file} was not changed", "已中断；{file} 保持不变")


def _say(args: argparse.Namespace, *texts: Text) -> None:
    """On stderr where stdout is the file's."""
    from torchferry.report.streams import reader_may_leave

    is_taken = args.output == _STDOUT or args.format == JSON
    stream, language = sys.stderr if is_taken else sys.stdout, options.language_of(args)
    with reader_may_leave():
        for text in texts:
            print(text.in_language(language), file=stream, flush=True)

"""`ferry profile`: a few steps of a program, profiled without an edit of it."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser, WrongValue
from torchferry.cli.made import MadeFile, add_summary_format, stdout_kept, tell_made
from torchferry.cli.output import say
from torchferry.cli.program import USAGE, add_place, add_program, place_of, program_of, say_if_simulated
from torchferry.errors import RunError
from torchferry.report.progress import beside_program
from torchferry.text import NOTHING, Text

DEFAULT_OUTPUT = "prof"
_DEFAULT_STEPS = "10:12"
_DEFAULT_WARMUP = 1
_RANGE = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")


ABOUT = About(
    Text(
        "Records operators, shapes, memory and the lines that call them. A step reaches from the end of one optimizer "
        "step to the end of the next, so that waiting for data is included. Until the first profiled step the program "
        "runs at full speed. `ferry analyze DIR` names the bottleneck.",
        "采集算子、形状、内存以及调用它们的代码行。一步从一次优化器更新结束到下一次结束，因此包含等待数据的时间。在第一个采集步"
        "之前，程序全速运行。`ferry analyze DIR` 指出瓶颈。",
    ),
    (
        Example(
            "ferry profile train.py",
            Text("Profile steps 10 to 12 into the folder prof", "采集第 10 到 12 步，写入文件夹 prof"),
        ),
        Example(
            "ferry profile --to ascend --window 100:102 -o prof_npu train.py",
            Text("Later steps, on a vendor's device", "在厂商设备上采集靠后的步"),
        ),
    ),
    usage=(USAGE,),
    exit_codes=(
        (
            "3",
            Text("The program failed half way; what was profiled is kept", "程序中途失败；已采集的内容保留"),
        ),
    ),
    page="how-to/profile.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry profile`."""
    add_program(parser)
    text = Text(
        "Folder for the profile: run.json and a trace of each process. It is written whole or not at all; an earlier "
        "profile is replaced, any other folder is not (default: {name})",
        "性能数据文件夹：run.json 和每个进程的 trace。要么完整写出，要么不写；先前的性能数据会被替换，其他文件夹不会（默认：{name}）",
    ).format(name=DEFAULT_OUTPUT)
    options.add_output(parser, DEFAULT_OUTPUT, text, "DIR")
    add_summary_format(parser)
    group = parser.group(Text("What is profiled", "采集范围"))
    text = Text(
        "Profile these steps, counted from 1, or only one; the first steps of a program compile and load, and say "
        "little. The program stops after the last (default: {steps})",
        "采集这些步（从 1 开始计数），也可以只写一步；程序最初的几步在编译和加载，参考意义不大。最后一步之后程序停止（默认：{steps}）",
    ).format(steps=_DEFAULT_STEPS)
    group.add(
        "--window",
        old=("--steps",),
        type=steps,
        default=steps(_DEFAULT_STEPS),
        metavar="FIRST:LAST",
        text=text,
    )
    text = Text(
        "Number of steps before the first one in which the profiler runs without keeping anything, so that its start "
        "is not in the profile (default: {count})",
        "在第一个采集步之前让性能采集器空转的步数，使其启动开销不计入结果（默认：{count}）",
    ).format(count=_DEFAULT_WARMUP)
    group.add("--warmup", type=options.whole_number(0), default=_DEFAULT_WARMUP, metavar="N", text=text)
    options.add_switch(
        group,
        "--no-stacks",
        Text(
            "Leave out Python's functions: cheaper, but no line numbers",
            "不采集 Python 函数：开销更小，但没有行号",
        ),
    )
    options.add_switch(
        group,
        "--no-shapes",
        Text("Leave out shapes, strides and types of operators' inputs", "不采集算子输入的形状、步幅和类型"),
    )
    options.add_switch(group, "--no-memory", Text("Leave out allocations", "不采集内存分配"))
    text = Text(
        "Let the program go on, unprofiled, after the last step", "最后一步之后让程序继续运行，不再采集"
    )
    options.add_switch(group, "--keep-going", text, old=("--keep-running",))
    add_place(parser)


def steps(text: str) -> tuple[int, int]:
    """Steps that are written as 10:12, or 10 alone."""
    found = _RANGE.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if not 1 <= first <= last:
        raise WrongValue(_NO_RANGE.format(text=text, example=_DEFAULT_STEPS))
    return first, last


_NO_RANGE = Text(
    "'{text}' is no range of steps from 1 on; write it as {example}",
    "'{text}' 不是从 1 开始的步范围；请写成 {example}",
)
_COMMAND = "ferry profile"
_KEPT = Text(
    "what was there is kept as {path}: it holds things that no profile has written",
    "原有内容保留为 {path}：其中有并非由 profile 写出的内容",
)


_INTERRUPTED = Text("interrupted; {output} is complete", "已中断；{output} 是完整的")
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
    first, last = args.window
    settings = ProfileSettings(
        "",
        first,
        last,
        args.warmup,
        stacks=not args.no_stacks,
        shapes=not args.no_shapes,
        memory=not args.no_memory,
        keep_running=args.keep_going,
        seed=args.seed,
    )
    with stdout_kept(args), beside_program(_PROFILING, args.quiet, options.language_of(args)):
        profiled = run_profiled(program, settings, place, output, args.timeout)
    code = profiled.ending.exit_code
    if profiled.is_written:
        say(args, _COMMAND, *sentences(output, settings, profiled.traces, code))
    if profiled.kept:
        say(args, _COMMAND, _KEPT.format(path=profiled.kept))
    stop_if_told(profiled.ending, _INTERRUPTED.format(output=output) if profiled.is_written else NOTHING)
    if not profiled.is_written:
        raise RunError(nothing_profiled(program, settings, profiled))
    is_whole = all(each.last_step >= last for each in profiled.traces)
    # what the early end of a process does to the program is not its fault
    ended = 3 if code and (settings.keep_running or not is_whole) else 0
    traces = [
        MadeFile(str(output / each.trace), each.rank, steps=each.last_step - each.first_step + 1)
        for each in profiled.traces
    ]
    words = {"vendor": place.vendor_name, "device": place.kind.value}
    return tell_made(args, "profile", ended, traces, **words)

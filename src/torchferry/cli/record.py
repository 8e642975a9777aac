"""`ferry record`: what every operator of a program is given and returns, in one HDF5 file; and what is done with such files."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.accuracy.kernels import FORMATS, kernel_report, recorded_report
from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Group, Parser
from torchferry.cli.made import MadeFile, add_summary_format, stdout_kept, tell_made
from torchferry.cli.output import exit_code, need, say, write
from torchferry.cli.program import USAGE, add_place, add_program, place_of, program_of, say_if_simulated
from torchferry.errors import OutputError, RunError
from torchferry.report.progress import Counted, beside_program, long_task
from torchferry.report.streams import reader_may_leave
from torchferry.text import NOTHING, Text, named

if TYPE_CHECKING:
    from torchferry.accuracy.cutting import CutRequest
    from torchferry.accuracy.file.reader import Record
    from torchferry.accuracy.record.outputs import WrittenRecord
    from torchferry.report.terminal import Words

DEFAULT_OUTPUT = "record.h5"

_INFO, _CONVERT, _KERNELS, _CUT = "info", "convert", "kernels", "cut"
_COMMAND = "ferry record"
_SLICE_OVER = "64MB"


ABOUT = About(
    Text(
        "Records one step or several of a program into an HDF5 file. Two recordings can be compared if both runs had "
        "the same data, weights and random numbers; a program that sets no seed needs --seed. torch.compile is "
        "switched off, so that every operator shows.",
        "将程序的一步或多步记录到一个 HDF5 文件。两次运行的数据、权重和随机数相同，两份记录才能比较；不设置种子的程序需要 --seed。"
        "torch.compile 会被关闭，以便看到每个算子。",
    ),
    (
        Example(
            "ferry record --seed 0 -o gpu.h5 train.py",
            Text("Record the first step on this machine", "在本机记录第一步"),
        ),
        Example(
            "ferry record --to ascend --seed 0 -o npu.h5 train.py",
            Text("The same on a vendor's device", "在厂商设备上记录同一步"),
        ),
        Example(
            "ferry record cut npu.h5 --call 12 -o small.h5",
            Text("Cut one call out of a recording", "从记录中截取一次调用"),
        ),
    ),
    usage=(
        USAGE,
        "info FILE",
        "convert FILE (--npy DIR | --txt DIR | --msprobe DIR | -o RECORD)",
        "cut FILE --call N [-o FILE]",
        "kernels TRACE [--of FILE]",
    ),
    exit_codes=(
        (
            "3",
            Text("The program failed half way; what was recorded is kept", "程序中途失败；已记录的内容保留"),
        ),
    ),
    page="how-to/record.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry record`."""
    add_program(parser)
    group = parser.group(Text("What is kept of each tensor", "每个张量保存的内容"))
    kept = group.either()
    text = Text(
        "Keep the elements of every tensor, equal ones once: what `ferry compare` and `ferry replay` need (default)",
        "保存每个张量的元素，相同的只存一次：`ferry compare` 和 `ferry replay` 需要（默认）",
    )
    options.add_switch(kept, "--tensors", text)
    text = Text(
        "Keep statistics and a checksum of each tensor: small and quick, for many steps",
        "保存每个张量的统计值和校验和：体积小、速度快，适合很多步",
    )
    options.add_switch(kept, "--stats", text)
    options.add_switch(
        kept,
        "--inputs",
        Text("Keep the elements of inputs, and statistics of outputs", "保存输入的元素和输出的统计值"),
    )
    _add_slices(group)
    _add_scope(parser.group(Text("What is recorded", "记录范围")))
    text = Text(
        "The recording; several processes write FILE.rank0.h5, FILE.rank1.h5 ... An earlier recording of that name is "
        "replaced (default: {name})",
        "记录文件；多进程时写出 FILE.rank0.h5、FILE.rank1.h5 等。同名的先前记录会被替换（默认：{name}）",
    )
    options.add_output(parser, DEFAULT_OUTPUT, text.format(name=DEFAULT_OUTPUT))
    text = Text(
        "Give each operator the inputs that it had in this recording: own errors only, none that are inherited",
        "为每个算子提供其在该记录中的输入：只反映自身误差，不含继承的误差",
    )
    parser.add("--replay", type=Path, metavar="GOLDEN", text=text)
    add_summary_format(parser)
    for beside in (info_parser(), convert_parser(), cut_parser(), kernels_parser()):
        parser.beside(beside)
    add_place(parser)


def _add_slices(group: Group) -> None:
    text = Text(
        "Of large tensors keep N slices, evenly spaced along the first dimension longer than 1, with the statistics of "
        "all elements",
        "对大张量，沿第一个长度大于 1 的维度等间隔保存 N 个切片，并保存全部元素的统计值",
    )
    group.add("--slice", dest="slices", type=options.at_least_one, default=0, metavar="N", text=text)
    text = Text(
        "With --slice: size from which a tensor is large (default: {size})",
        "配合 --slice：视为大张量的大小（默认：{size}）",
    )
    group.add("--slice-over", type=options.size, metavar="SIZE", text=text.format(size=_SLICE_OVER))
    text = Text(
        "Disk space that all processes of a machine may use together, for example 50GB; then recording ends and the "
        "program goes on (default: until 1 GiB of the disk is left)",
        "一台机器上所有进程合计可用的磁盘空间，例如 50GB；用完后停止记录，程序继续（默认：直到磁盘剩余 1 GiB）",
    )
    group.add("--limit", type=options.size, metavar="SIZE", text=text)


def _add_scope(group: Group) -> None:
    text = Text(
        "Stop the program after N steps, counting those that a GradScaler skips; a step ends when every optimizer has "
        "stepped, or one would step again. `all` runs it to its end (default: 1)",
        "运行 N 步后停止程序，计入 GradScaler 跳过的步；所有优化器都更新过，或某个优化器将再次更新时，一步结束。`all` 表示运行到"
        "结束（默认：1）",
    )
    options.add_steps(group, text)
    options.add_first_step(group, Text("First step to record (default: 1)", "记录的第一步（默认：1）"))
    text = Text(
        "Record from `import torch` on, including set-up: for programs that call no module (default: from the first "
        "call of a module with parameters)",
        "从 `import torch` 起记录，包括初始化：用于不调用模块的程序（默认：从首次调用带参数的模块起）",
    )
    options.add_switch(group, "--whole", text)
    options.add_every(
        group,
        Text(
            "Record the first step and every N-th (default: 1, all)",
            "记录第一步和每第 N 步（默认：1，即全部）",
        ),
        1,
    )
    options.add_selection(group)
    text = Text(
        "Record inputs, outputs and gradients of modules instead of operators: quick and small; `ferry compare` then "
        "says which module to look into",
        "记录模块（而非算子）的输入、输出和梯度：速度快、体积小；`ferry compare` 会指出应检查哪个模块",
    )
    options.add_switch(group, "--modules-only", text)
    text = Text("Record only the process of this rank (default: all)", "只记录该 rank 的进程（默认：全部）")
    group.add("--rank", type=options.whole_number(0), metavar="R", text=text)
    text = Text(
        "Let the program go on, unrecorded, after the last step", "最后一步之后让程序继续运行，不再记录"
    )
    options.add_switch(group, "--keep-going", text)


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
        raise RunError(
            Text(
                "--whole and --first-step: only one of them at a time; leave one out",
                "--whole 和 --first-step：一次只能使用其中一个；请去掉一个",
            )
        )
    if args.modules_only and (args.operators or args.replay):
        other = "--op" if args.operators else "--replay"
        raise RunError(
            Text(
                f"--modules-only and {other}: modules have no operators; leave one out",
                f"--modules-only 和 {other}：记录模块时没有算子；请去掉一个",
            )
        )
    if args.slice_over and not args.slices:
        raise RunError(
            Text(
                "--slice-over selects the tensors that are cut into slices; say how many to keep with --slice N",
                "--slice-over 指定哪些张量被切片；请用 --slice N 指定保存的切片数",
            )
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
    with stdout_kept(args), beside_program(_RECORDING, args.quiet, options.language_of(args), written):
        recorded = run_recorded(program, settings, place, args.timeout)
    outcomes = [outcome for outcome, _ in recorded.files]
    for outcome, was_repaired in recorded.files:
        say(args, _COMMAND, *sentences(outcome, was_repaired, settings.steps))
    say(args, _COMMAND, *noted(filter(None, [note])))
    ending = recorded.ending
    stop_if_told(ending, _INTERRUPTED if outcomes else NOTHING)
    if not outcomes:
        raise RunError(nothing_recorded(program, settings, recorded))
    is_early = any(outcome.problem or not outcome.is_over for outcome in outcomes)
    if not any(outcome.calls for outcome in outcomes) and not ending.exit_code and not is_early:
        raise RunError(_NO_CALL.format(file=args.output))
    # what the early end of a process does to the program is not its fault
    made_all = args.steps is not None and all(outcome.steps >= args.steps for outcome in outcomes)
    is_partial = is_early or bool(ending.exit_code and (args.keep_going or not made_all))
    code = exit_code(is_found=False, is_partial=is_partial)
    return tell_made(
        args, "record", code, made_files(outcomes), vendor=place.vendor_name, device=place.kind.value
    )


def made_files(outcomes: Iterable[WrittenRecord]) -> list[MadeFile]:
    """The recordings of all processes."""
    return [
        MadeFile(each.path, each.rank, each.calls, each.steps, each.is_over and not each.problem)
        for each in outcomes
    ]


_RECORDING = Text("recording", "正在记录")


def _bytes_written(output: Path) -> tuple[int, int]:
    from torchferry.accuracy.record.outputs import files_of

    return sum(file.stat().st_size for file in files_of(output)), 0


_NO_CALL = Text(
    "{file}: holds no call; no operator of these steps matches --in-module, --op and --phase; `ferry record --stats` "
    "without them, then `ferry record info`, shows what there is",
    "{file}：没有调用；这些步中没有算子符合 --in-module、--op 和 --phase；先不带这些选项运行 `ferry record --stats`，再用 `ferry "
    "record info` 查看",
)


def _golden(replay: Path, output: Path) -> Path:
    """The record to replay, looked at before the run: of one process, or the first rank's of several."""
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.record.outputs import files_of
    from torchferry.accuracy.replay.launching import check_replayable

    golden = replay.absolute()
    if {path.resolve() for path in files_of(output)} & {path.resolve() for path in files_of(golden)}:
        raise RunError(
            Text(
                f"{replay}: can't be replayed and overwritten at once; name another file with -o",
                f"{replay}：不能同时重放并覆盖；请用 -o 指定其他文件",
            )
        )
    for record in open_records(golden):
        with record:
            check_replayable(record)
    return golden


# `ferry record info` and `ferry record convert`: what is in a record, and its tensors as files of their own.


_FILE = Text(
    "A recording, for several ranks without .rank0; a file or folder of a runtime's own dump; a folder of msprobe's",
    "一份记录（多 rank 时不写 .rank0），运行时自身的 dump 文件或文件夹，或 msprobe 的 dump 文件夹",
)


def info_parser() -> Parser:
    """`ferry record info`."""
    about = About(
        Text(
            "Shows of which run a recording is, which steps it holds and how often each operator was called.",
            "显示记录来自哪次运行、包含哪些步以及每个算子的调用次数。",
        ),
        (Example("ferry record info gpu.h5", Text("Show what a recording holds", "显示记录的内容")),),
        page="how-to/record.md",
    )
    parser = Parser(f"{_COMMAND} {_INFO}", Text("Show what a recording holds", "显示记录的内容"), about)
    parser.add("file", type=Path, metavar="FILE", text=_FILE)
    options.add_language(parser)
    return parser


def convert_parser() -> Parser:
    """`ferry record convert`."""
    about = About(
        Text(
            "Writes the tensors of a recording as DIR/number_operator/input/name.npy or .txt, as dumps that msprobe "
            "reads, or a dump of another tool as a recording.",
            "将记录中的张量写成 DIR/编号_算子/input/name.npy 或 .txt，或 msprobe 可读的 dump；也可将其他工具的 dump 写成记录。",
        ),
        (
            Example(
                "ferry record convert gpu.h5 --npy tensors",
                Text("One .npy file per tensor", "每个张量一个 .npy 文件"),
            ),
            Example(
                "ferry record convert dump_folder -o npu.h5",
                Text("Make a recording of a dump", "将 dump 转成记录"),
            ),
        ),
        page="how-to/record.md",
    )
    summary = Text("Convert a recording to files of other tools, or back", "在记录与其他工具的文件之间转换")
    parser = Parser(f"{_COMMAND} {_CONVERT}", summary, about)
    parser.add("file", type=Path, metavar="FILE", text=_FILE)
    kind = parser.either(required=True)
    kind.add(
        "--npy",
        type=Path,
        metavar="DIR",
        text=Text(
            "Write one .npy file per tensor, for numpy.load", "每个张量写一个 .npy 文件，可用 numpy.load 读取"
        ),
    )
    kind.add(
        "--txt",
        type=Path,
        metavar="DIR",
        text=Text(
            "Write one .txt file per tensor, a number per line", "每个张量写一个 .txt 文件，每行一个数"
        ),
    )
    text = Text(
        "Write dumps as msprobe does, for its `compare`: DIR/step0/rank0/dump.json",
        "按 msprobe 的格式写 dump，供其 `compare` 使用：DIR/step0/rank0/dump.json",
    )
    kind.add("--msprobe", type=Path, metavar="DIR", text=text)
    text = Text(
        "Write a recording, from a dump of another tool; several ranks: RECORD.rank0.h5 ...",
        "由其他工具的 dump 写出记录；多 rank 时为 RECORD.rank0.h5 等",
    )
    kind.add("-o", "--output", type=Path, metavar="RECORD", text=text)
    options.add_quiet(parser)
    options.add_language(parser)
    return parser


def run_files(verb: str, words: list[str]) -> int:
    """One of the two; the answer is an exit code."""
    parser = convert_parser() if verb == _CONVERT else info_parser()
    args = parser.parse(words)
    return _convert(args) if verb == _CONVERT else _info(args)


def _info(args: argparse.Namespace) -> int:
    from torchferry.accuracy.file.reader import open_records
    from torchferry.report.formats import Options
    from torchferry.report.terminal import Words

    words = Words(Options(args.lang))
    with reader_may_leave():
        for record in open_records(args.file):
            with record:
                for line in _described(record, words):
                    print(line)
    return 0


_PROGRAM, _OPTIONS, _DEVICE = Text("program", "程序"), Text("options", "选项"), Text("device", "设备")
_TORCH, _RANK, _KEEPS = Text("torch", "PyTorch"), Text("rank", "rank"), Text("keeps", "保留")
_INPUTS_OF, _SELECTED = Text("inputs of", "输入取自"), Text("selected", "已选择")
_IN_PART, _COMPLETE = Text("in part", "部分保留"), Text("complete", "完整")
_SIZE, _NOTES, _STEP = Text("size", "大小"), Text("notes", "说明"), Text("step {step:<5}", "步 {step:<5}")
_KEPT = {
    "statistics": Text("statistics", "统计量"),
    "tensors": Text("tensors", "张量"),
    "inputs": Text("inputs", "输入"),
}
_OF_MODULES = Text("{kept} of modules", "模块的{kept}")
_OF_VENDOR = Text("{device} of {vendor}", "{device}，{vendor}")
_SIMULATED = Text("{device} (simulated)", "{device}（模拟）")
_RANK_OF = Text("{rank} of {world}", "{rank}，共 {world} 个")
_YES = Text("yes", "是")
_NO = Text("no: its process was ended before it could end the file", "否：进程在写完文件之前已结束")
_OTHERWISE = Text(
    "{size}; {raw} if equal tensors were not written once", "{size}；若相同张量不只写一次则为 {raw}"
)
_COUNTED = Text("{count:,} calls", "{count:,} 次调用")
_LABEL = 10  # columns


def _described(record: Record, words: Words) -> Iterator[str]:
    from torchferry.accuracy.model import kept_nbytes
    from torchferry.report.safe import one_line
    from torchferry.units import size

    steps, phases, operators, raw = Counter[int](), Counter[str](), Counter[str](), 0
    for call in record.calls:
        steps[call.step] += 1
        phases[call.phase] += 1
        operators[call.operator] += 1
        raw += sum(map(kept_nbytes, (*call.inputs, *call.outputs)))
    taken = size(record.size())
    facts = [*_facts(record), (_SIZE, _OTHERWISE.format(size=taken, raw=size(raw)) if raw else taken)]
    facts.append((_NOTES, "; ".join(record.header.notes)))

    def calls(count: int) -> str:
        return words.say(_COUNTED.format(count=count))

    path = str(record.path)
    yield words.say(named(Text(path, path), _COUNTED.format(count=len(record.calls))))
    yield from (f"  {words.padded(name, _LABEL)} {words.say(value)}" for name, value in facts if value)
    yield from (
        f"  {words.say(_STEP.format(step=step))} {calls(count)}" for step, count in sorted(steps.items())
    )
    yield from (f"  {one_line(phase) or '?':<{_LABEL}} {calls(count)}" for phase, count in phases.items())
    yield from (f"  {count:>8,}  {one_line(name)}" for name, count in operators.most_common())


def _facts(record: Record) -> Iterator[tuple[Text, Text | str]]:
    header = record.header
    device: Text | str = _SIMULATED.format(device=header.device) if header.simulated else header.device
    kept = _KEPT[header.kept.value]
    yield _PROGRAM, header.program
    yield _OPTIONS, header.options
    yield _DEVICE, _OF_VENDOR.format(device=device, vendor=header.vendor) if header.vendor else device
    yield _TORCH, header.torch
    yield _RANK, _RANK_OF.format(rank=header.rank, world=header.world)
    yield _KEEPS, _OF_MODULES.format(kept=kept) if header.modules_only else kept
    yield _INPUTS_OF, header.replayed
    yield _SELECTED, header.selected
    yield _IN_PART, header.in_part
    yield _COMPLETE, _YES if header.complete else _NO


_INTERRUPTED = Text("interrupted; what was recorded until then is kept", "已中断；保留到此为止的记录")
_CONVERTING = Text("converting the recording", "正在转换记录")


def _convert(args: argparse.Namespace) -> int:
    if args.output is not None:
        return _rewrite(args)
    if args.msprobe is not None:
        from torchferry.accuracy.file.convert import convert_to_api_dump

        with long_task(_CONVERTING, args.quiet, Counted.CALLS) as show:
            count = convert_to_api_dump(args.file, args.msprobe, show)
        _tell(args, _TENSORS.format(place=args.msprobe, count=f"{count:,}"))
        return 0
    from torchferry.accuracy.file.convert import Form, convert
    from torchferry.accuracy.file.reader import open_records

    folder, form = (args.npy, Form.NPY) if args.npy is not None else (args.txt, Form.TXT)
    records = open_records(args.file)
    if len(records) > 1 and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(
            Text(
                f"{folder}: exists and is not empty; name another folder",
                f"{folder}：已存在且不为空；请指定其他文件夹",
            )
        )
    count = 0
    for record in records:
        with record:
            place = folder / f"rank{record.header.rank}" if len(records) > 1 else folder
        with long_task(_CONVERTING, args.quiet, Counted.CALLS) as show:
            count += convert(record.path, place, form, show or _silent)
    _tell(args, _TENSORS.format(place=folder, count=f"{count:,}"))
    return 0


def _silent(done: int, count: int) -> None:
    pass


_TENSORS = Text("{place}: {count} tensors", "{place}：{count} 个张量")
_CALLS = Text("{place}: {count} calls", "{place}：{count} 次调用")


def _tell(args: argparse.Namespace, said: Text) -> None:
    say(args, _COMMAND, said)


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
            _tell(args, _CALLS.format(place=args.output.with_name(name), count=f"{count:,}"))
    return 0


# `ferry record cut`: some calls of a record as a record of their own.

_CUT_ABOUT = About(
    Text(
        "Writes some calls of a recording as a separate recording, with their contents and numbers: small enough "
        "for an issue, and read by all commands.",
        "将记录中的部分调用连同内容和编号写成单独的记录：小到可以附在问题单中，所有命令都能读取。",
    ),
    (
        Example(
            "ferry record cut npu.h5 --call 12 -o small.h5",
            Text("The call that `ferry compare` names", "`ferry compare` 指出的调用"),
        ),
        Example(
            "ferry record cut npu.h5 --call 12-20,31",
            Text("Several calls, into npu.cut.h5", "多个调用，写入 npu.cut.h5"),
        ),
        Example(
            "ferry record cut npu.h5 --step 2 --in-module 'layer1.*' --op '*norm*'",
            Text("By step, module and operator", "按步、模块和算子选取"),
        ),
    ),
    page="how-to/record.md",
)
_CUT_SAID = Text("{file}: {calls} of {of} calls, {nbytes}", "{file}：{of} 个调用中的 {calls} 个，{nbytes}")


def run_cut(words: list[str]) -> int:
    """Cut the records of all ranks; the answer is an exit code."""
    from torchferry.accuracy.cutting import check_cut_output, chosen_calls, cut
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.record.outputs import file_of
    from torchferry.units import size

    args = cut_parser().parse(words)
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


def cut_parser() -> Parser:
    """`ferry record cut`."""
    summary = Text("Cut calls out of a recording", "从记录中截取调用")
    parser = Parser(f"{_COMMAND} {_CUT}", summary, _CUT_ABOUT)
    text = Text("A recording, for several ranks without .rank0", "一份记录，多 rank 时不写 .rank0")
    parser.add("file", type=Path, metavar="FILE", text=text)
    text = Text(
        "Numbers of calls, as `ferry compare` and `ferry record info` count them: 12, 12-20 or 3,12-20",
        "调用编号，与 `ferry compare` 和 `ferry record info` 的计数一致：12、12-20 或 3,12-20",
    )
    options.add_repeatable(parser, "--call", "N", text, type=options.number_ranges, dest="calls")
    text = Text("Only calls of these steps: 2 or 2-4", "仅限这些步的调用：2 或 2-4")
    options.add_repeatable(parser, "--step", "N", text, type=options.number_ranges, dest="steps")
    options.add_selection(parser)
    text = Text(
        "The new recording (default: FILE.cut.h5); an earlier one is replaced",
        "新的记录（默认：FILE.cut.h5）；先前的记录会被替换",
    )
    options.add_output(parser, None, text)
    options.add_quiet(parser)
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
        raise RunError(
            Text(
                "which calls? name some with --call N, or with --step, --in-module, --op or --phase",
                "哪些调用？请用 --call N 指定，或用 --step、--in-module、--op、--phase 选取",
            )
        )
    return request


# `ferry record kernels`: which kernels of a device the operators of a profiler's trace launched.


def kernels_parser() -> Parser:
    """`ferry record kernels`."""
    about = About(
        Text(
            "Shows which kernels of the device each operator launched, from a trace of torch.profiler or of a vendor's "
            "profiler.",
            "根据 torch.profiler 或厂商性能工具的 trace，显示每个算子启动了设备的哪些 kernel。",
        ),
        (
            Example(
                "ferry record kernels trace.json --op conv", Text("Kernels of convolutions", "卷积的 kernel")
            ),
            Example(
                "ferry record kernels trace.json --of npu.h5",
                Text("Kernels of each call of a recording", "记录中每次调用的 kernel"),
            ),
        ),
        page="how-to/record.md",
    )
    summary = Text("Show which kernels each operator launched", "显示每个算子启动了哪些 kernel")
    parser = Parser(f"{_COMMAND} {_KERNELS}", summary, about)
    text = Text("Trace of the same step, .json or .json.gz", "同一步的 trace，.json 或 .json.gz")
    parser.add("trace", type=Path, metavar="TRACE", text=text)
    parser.add(
        "--op",
        default="",
        metavar="TEXT",
        text=Text("Only operators whose names contain TEXT", "仅限名称包含 TEXT 的算子"),
    )
    text = Text(
        "List the calls of this recording, each with its kernels: the n-th call of an operator with some shapes in a "
        "step is the n-th of the trace",
        "列出该记录的调用及其 kernel：一步中某算子某种形状的第 n 次调用对应 trace 中的第 n 次",
    )
    parser.add("--of", type=Path, metavar="RECORD", text=text)
    options.add_format(parser, FORMATS)
    options.add_language(parser)
    return parser


def run_kernels(words: list[str]) -> int:
    """The answer is an exit code."""
    args = kernels_parser().parse(words)
    need(traces.EXTRA, *traces.LIBRARIES)
    language = options.language_of(args)
    if args.of is None:
        report = kernel_report(args.trace, args.op, args.format, language)
    else:
        report = recorded_report(args.of, args.trace, args.op, args.format)
    write(report)
    return 0

"""`ferry watch`: light statistics of a long training at every n-th step, and their curves."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.made import add_summary_format, stdout_kept, tell_made
from torchferry.cli.output import (
    RECORD_EXTRA,
    check_reports,
    check_writable,
    deliver,
    need,
    report_options,
    say,
)
from torchferry.cli.program import USAGE, add_place, add_program, place_of, program_of
from torchferry.errors import InputError, RunError
from torchferry.report.progress import Counted, long_task
from torchferry.text import NOTHING, Text

if TYPE_CHECKING:
    from torchferry.accuracy.curves.live import LivePage
    from torchferry.accuracy.curves.trends import Trends

DEFAULT_OUTPUT = "watch.h5"
_EVERY = 100
_COMMAND = "ferry watch"
_SHOW, _CONVERT = "show", "convert"
_PAGE = ".html"


ABOUT = About(
    Text(
        "Keeps statistics of loss, gradients, parameters and their updates, batch norms, outputs of modules, learning "
        "rates, the scale of a GradScaler and the time of a step. The program runs to its own end. `ferry watch show` "
        "draws the curves; `ferry compare a.h5 b.h5` says at which step and module two runs part.",
        "保存损失、梯度、参数及其更新、批归一化、模块输出、学习率、GradScaler 缩放系数和每步用时的统计值。程序运行到自然结束。"
        "`ferry watch show` 绘制曲线；`ferry compare a.h5 b.h5` 指出两次运行在哪一步、哪个模块开始分离。",
    ),
    (
        Example(
            "ferry watch -o npu.h5 --to ascend train.py",
            Text("Watch a training on a vendor's device", "监视厂商设备上的训练"),
        ),
        Example(
            "ferry watch --page curves.html --golden gpu.h5 train.py",
            Text(
                "Follow the curves in a browser, beside an earlier run",
                "在浏览器中实时查看曲线，并与先前的运行对照",
            ),
        ),
        Example(
            "ferry watch show npu.h5 gpu.h5 -o curves.html",
            Text("Curves of two runs and their differences", "两次运行的曲线及其差异"),
        ),
    ),
    usage=(USAGE, "show FILE [GOLDEN] [-o PAGE.html]", "convert FILE ... --tensorboard DIR"),
    exit_codes=(
        (
            "0",
            Text(
                "The program ended with 0; any other code of the program is passed on",
                "程序以 0 结束；其他退出码原样返回",
            ),
        ),
    ),
    page="how-to/watch.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry watch`."""
    add_program(parser)
    text = Text(
        "Watch the first step of the optimizer and every N-th (default: {every})",
        "监视优化器的第一步和每第 N 步（默认：{every}）",
    )
    options.add_every(parser, text.format(every=_EVERY), _EVERY)
    text = Text(
        "The recording; it can be read at any time, also while the program runs. Several processes write FILE.rank0.h5 "
        "... An earlier recording of that name is replaced (default: {name})",
        "记录文件；可随时读取，包括程序运行期间。多进程时写出 FILE.rank0.h5 等。同名的先前记录会被替换（默认：{name}）",
    )
    options.add_output(parser, DEFAULT_OUTPUT, text.format(name=DEFAULT_OUTPUT))
    add_summary_format(parser)
    for beside in (show_parser(), convert_parser()):
        parser.beside(beside)
    group = parser.group(Text("Curves while the program runs", "运行期间的曲线"))
    text = Text(
        "Draw the curves on this page, which follows the run in a browser and is complete at its end",
        "在该网页上绘制曲线：可在浏览器中跟随运行，结束时内容完整",
    )
    group.add("--page", type=Path, metavar="FILE.html", text=text)
    text = Text(
        "With --page: also draw the curves of this earlier run, and the differences",
        "配合 --page：同时绘制该次先前运行的曲线及差异",
    )
    group.add("--golden", type=Path, metavar="FILE", text=text)
    add_place(parser)


def run(args: argparse.Namespace) -> int:
    """Watch a program; the answer is the program's own exit code."""
    verb = "" if args.is_module else next(iter(args.program), "")
    if verb == _SHOW:
        return run_show(args.program[1:])
    if verb == _CONVERT:
        return run_convert(args.program[1:])
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import build_for, check_output, run_recorded
    from torchferry.accuracy.record.outputs import noted, sentences
    from torchferry.accuracy.record.settings import WatchSettings
    from torchferry.launch.supervise import stop_if_told

    program = program_of(args, f"{_COMMAND} [OPTIONS] SCRIPT [ARGUMENTS]")
    place = place_of(args)
    output = Path(args.output).absolute()
    settings = WatchSettings(
        str(output),
        kept=Kept.STATISTICS,
        steps=None,
        seed=args.seed,
        replaced=check_output(output),
        every=args.every,
    )
    live = _live_page(args, output, settings.replaced)
    say(args, _COMMAND, *noted(filter(None, [build_for(place, args.quiet)])))
    with stdout_kept(args), _following(live):
        recorded = run_recorded(program, settings, place, args.timeout)
    for outcome, was_repaired in recorded.files:
        say(args, _COMMAND, *sentences(outcome, was_repaired))
    if live is not None and recorded.files:
        _finish_page(args, live)
    ending = recorded.ending
    stop_if_told(ending, _INTERRUPTED if recorded.files else NOTHING)
    if recorded.files:
        from torchferry.cli.record import made_files

        files = made_files(outcome for outcome, _ in recorded.files)
        place_words = {"vendor": place.vendor_name, "device": place.kind.value}
        return tell_made(args, "watch", ending.exit_code, files, **place_words)
    if ending.exit_code:
        raise RunError(
            Text(
                f"{program.target}: ended with exit code {ending.exit_code} before anything was seen; its output is above",
                f"{program.target}：在采集到任何内容之前以退出码 {ending.exit_code} 结束；其输出见上方",
            )
        )
    raise RunError(
        Text(
            f"{program.target}: called no module that has parameters, so there was nothing to watch",
            f"{program.target}：没有调用带参数的模块，因此没有可监视的内容",
        )
    )


# The page of a program that runs.


def _live_page(args: argparse.Namespace, output: Path, replaced: Sequence[str]) -> LivePage | None:
    if args.page is None:
        if args.golden is not None:
            raise RunError(
                Text(
                    "--golden is drawn on a page; name one with --page FILE.html",
                    "--golden 绘制在网页上；请用 --page FILE.html 指定",
                )
            )
        return None
    _need_numpy()
    _check_page(args.page)
    from torchferry.accuracy.curves.live import LivePage
    from torchferry.accuracy.curves.runs import run_files

    golden = [args.golden] if args.golden is not None else []
    taken = {path.resolve() for path in (output, *map(Path, replaced))}
    if any(path.resolve() in taken for name in golden for path in run_files(name)):
        raise RunError(
            Text(
                f"{args.golden}: can't be drawn and overwritten at once; name another file with -o",
                f"{args.golden}：不能同时绘制并覆盖；请用 -o 指定其他文件",
            )
        )
    earlier = {path: path.stat().st_mtime_ns for path in map(Path, replaced)}

    def is_of_before() -> bool:
        return any(path.exists() and path.stat().st_mtime_ns == moment for path, moment in earlier.items())

    return LivePage(args.page.absolute(), [output, *golden], report_options(args), is_of_before)


def _check_page(page: Path) -> None:
    if page.suffix.lower() != _PAGE:
        raise RunError(
            Text(
                f"{page}: curves are drawn on a page; end its name in {_PAGE}",
                f"{page}：曲线绘制在网页上；文件名须以 {_PAGE} 结尾",
            )
        )
    check_writable(page.absolute())


def _following(live: LivePage | None) -> AbstractContextManager[object]:
    if live is None:
        return nullcontext()
    from torchferry.accuracy.curves.live import Follower

    return Follower(live)


_READING = Text("reading curves", "正在读取曲线")
_CONVERTING = Text("converting curves", "正在转换曲线")
_PAGE_WRITTEN = Text("{page}: the curves", "{page}：曲线")
_PAGE_MISSING = Text("{page}: not written: {problem}", "{page}：未写入：{problem}")


def _finish_page(args: argparse.Namespace, live: LivePage) -> None:
    """The page of the whole run; that it can't be made is no failure of the program."""
    try:
        live.write(is_last=True)
    except InputError as problem:
        say(args, _COMMAND, _PAGE_MISSING.format(page=args.page, problem=problem))
        return
    say(args, _COMMAND, _PAGE_WRITTEN.format(page=args.page))


def _need_numpy() -> None:
    need(RECORD_EXTRA, "numpy")


# `ferry watch show`: the curves of a file, or of two.


_IN_MODULE = Text(
    "Only modules whose path matches, for example layer1.* or *.attn",
    "仅限路径匹配的模块，例如 layer1.* 或 *.attn",
)


def show_parser() -> Parser:
    """`ferry watch show`."""
    about = About(
        Text(
            "Shows the curves of a run, or of two with their differences; the runs may still go on.",
            "显示一次运行的曲线，或两次运行的曲线及差异；运行可以尚未结束。",
        ),
        (
            Example("ferry watch show npu.h5", Text("Print the trends", "输出趋势")),
            Example(
                "ferry watch show npu.h5 gpu.h5 -o curves.html",
                Text("Draw both runs on a page", "将两次运行绘制到网页"),
            ),
        ),
        page="how-to/watch.md",
    )
    parser = Parser(
        f"{_COMMAND} {_SHOW}", Text("Show the curves of a run, or of two", "显示一次或两次运行的曲线"), about
    )
    text = Text(
        "File written by `ferry watch`, for several ranks without .rank0",
        "`ferry watch` 写出的文件，多 rank 时不写 .rank0",
    )
    parser.add("file", type=Path, metavar="FILE", text=text)
    text = Text("The same of the run to compare with", "用于对照的运行的同类文件")
    parser.add("golden", type=Path, nargs="?", metavar="GOLDEN", text=text)
    group = parser.group(Text("What is shown", "显示范围"))
    options.add_modules(group, _IN_MODULE)
    text = Text(
        "First step to show (default: 1); fewer steps are drawn in more detail",
        "显示的第一步（默认：1）；步数越少，曲线越细",
    )
    options.add_first_step(group, text)
    options.add_steps(
        group,
        Text("Number of steps from there on (default: all)", "从该步起的步数（默认：全部）"),
        default=None,
    )
    text = Text("Rank whose modules are shown (default: the first)", "显示哪个 rank 的模块（默认：第一个）")
    group.add("--rank", type=options.whole_number(0), metavar="R", text=text)
    group = parser.group(options.REPORTS)
    options.add_format(group, ("text", "json", "md", "csv", "html"))
    options.add_outputs(group)
    text = Text(
        "With -o FILE.html: rewrite the page while the run goes on, until it ends",
        "配合 -o FILE.html：运行期间不断更新网页，直到结束",
    )
    options.add_switch(group, "--follow", text)
    options.add_verbose(group)
    options.add_quiet(group)
    options.add_language(parser)
    return parser


def run_show(words: list[str]) -> int:
    """The answer is an exit code."""
    args = show_parser().parse(words)
    _need_numpy()
    from torchferry.accuracy.curves.reports import REPORTS

    check_reports(REPORTS, args.output)
    if args.follow:
        _follow(args)
    deliver(REPORTS, _trends(args), args)
    return 0


def _trends(args: argparse.Namespace) -> Trends:
    from torchferry.accuracy.curves.trends import CurveChoice, trends_of

    choice = CurveChoice(tuple(args.modules), args.first_step, args.steps, args.rank)
    with long_task(_READING, args.quiet, Counted.STEPS, options.language_of(args)) as show:
        return trends_of(list(filter(None, (args.file, args.golden))), choice, show or _silent)


def _silent(done: int, count: int) -> None:
    pass


def _follow(args: argparse.Namespace) -> None:
    """Until nobody writes the files any more."""
    from torchferry.accuracy.curves.live import SECONDS, LivePage
    from torchferry.accuracy.curves.runs import run_files
    from torchferry.accuracy.file.chunks import is_being_written

    pages = [path for path in args.output if path.suffix.lower() == _PAGE]
    if not pages:
        raise RunError(
            Text(
                "--follow rewrites a page; name one with -o FILE.html",
                "--follow 会不断更新网页；请用 -o FILE.html 指定",
            )
        )
    live = LivePage(pages[0], list(filter(None, (args.file, args.golden))), report_options(args))
    while any(map(is_being_written, run_files(args.file))):
        with suppress(InputError):  # no whole step yet
            live.write()
        time.sleep(SECONDS)


# `ferry watch convert`: event files of TensorBoard.


def convert_parser() -> Parser:
    """`ferry watch convert`."""
    about = About(
        Text(
            "Writes the curves as event files, a folder for each run and rank.",
            "将曲线写成事件文件，每次运行的每个 rank 一个文件夹。",
        ),
        (
            Example(
                "ferry watch convert npu.h5 gpu.h5 --tensorboard logs",
                Text("Then: tensorboard --logdir logs", "之后运行：tensorboard --logdir logs"),
            ),
        ),
        page="how-to/watch.md",
    )
    summary = Text("Convert the curves of runs for TensorBoard", "将运行的曲线转换为 TensorBoard 格式")
    parser = Parser(f"{_COMMAND} {_CONVERT}", summary, about)
    text = Text("Files written by `ferry watch`", "`ferry watch` 写出的文件")
    parser.add("files", type=Path, nargs="+", metavar="FILE", text=text)
    text = Text("Folder for `tensorboard --logdir DIR`", "供 `tensorboard --logdir DIR` 使用的文件夹")
    parser.add("--tensorboard", type=Path, required=True, metavar="DIR", text=text)
    options.add_modules(parser, _IN_MODULE)
    options.add_quiet(parser)
    options.add_language(parser)
    return parser


def run_convert(words: list[str]) -> int:
    """The answer is an exit code."""
    args = convert_parser().parse(words)
    _need_numpy()
    from torchferry.accuracy.curves.events import export
    from torchferry.accuracy.curves.runs import WatchedRun, run_files

    files = [file for name in args.files for file in run_files(name)]
    folders = [args.tensorboard / file.stem for file in files]
    if len(set(folders)) < len(folders):
        raise InputError(
            Text(
                "two of the files have the same name; convert them into different folders",
                "有两个文件同名；请转换到不同的文件夹",
            )
        )
    for file, folder in zip(files, folders, strict=True):
        run = WatchedRun(file, args.modules)
        try:
            with long_task(_CONVERTING, args.quiet, Counted.STEPS) as show:
                count = export(run, folder, show or _silent)
        finally:
            run.close()
        written = _CURVES.format(folder=folder, curves=f"{count:,}", steps=f"{len(run.steps):,}")
        say(args, _COMMAND, written)
    return 0


_INTERRUPTED = Text("interrupted; what was watched until then is kept", "已中断；保留到此为止的监视数据")
_CURVES = Text("{folder}: {curves} curves, {steps} steps", "{folder}：{curves} 条曲线，{steps} 步")

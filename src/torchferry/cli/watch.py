"""Keep light statistics of a long training at every n-th step, and draw their curves; two runs are told apart by them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import check_reports, check_writable, deliver, need, report_options, say
from torchferry.cli.program import add_place, add_program, place_of, program_of
from torchferry.errors import InputError, RunError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.curves.live import LivePage
    from torchferry.accuracy.curves.trends import Trends

DEFAULT_OUTPUT = "watch.h5"
_EVERY = 100
_COMMAND = "ferry watch"
_SHOW, _CONVERT = "show", "convert"
_PAGE = ".html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry watch`."""
    parser.usage = (
        "ferry watch [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry watch show FILE [GOLDEN] [-o PAGE.html]\n"
        "       ferry watch convert FILE ... --tensorboard DIR"
    )
    parser.epilog = (
        "Keeps statistics of the loss, of gradients, parameters and their updates, of the statistics of batch norms, "
        "of what modules answer and the gradients of that, learning rates, the scale of a GradScaler and the time of "
        "the step. `ferry watch show` draws their curves; `ferry compare a.h5 b.h5` says at which step and module two "
        "runs part. The program runs to its own end, and the command ends with its exit code. torch.compile is "
        "switched off, so that every module shows. `show` and `convert` come first; a script of that name is run as "
        "./show, or after --."
    )
    add_program(parser)
    options.add_every(
        parser,
        f"watch the first step of the optimizer and each N-th (default: {_EVERY})",
        _EVERY,
    )
    options.add_output(
        parser,
        DEFAULT_OUTPUT,
        "the record; it can be read at any time, also while the program runs or after it was killed. With "
        "several processes FILE.rank0.h5 ... A record of an earlier run of that name is replaced (default: "
        f"{DEFAULT_OUTPUT})",
    )
    group = parser.add_argument_group("curves while the program runs")
    group.add_argument(
        "--page",
        type=Path,
        metavar="FILE.html",
        help="draw the curves on this page, which follows the run in a browser, and is complete at its end",
    )
    group.add_argument(
        "--golden",
        type=Path,
        metavar="FILE",
        help="with --page: the curves of this earlier run, and differences",
    )
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
    with _following(live):
        recorded = run_recorded(program, settings, place, args.timeout)
    for outcome, was_repaired in recorded.files:
        say(args, _COMMAND, *sentences(outcome, was_repaired))
    if live is not None and recorded.files:
        _finish_page(args, live)
    ending = recorded.ending
    stop_if_told(ending, "interrupted; what was watched until then is kept" if recorded.files else "")
    if recorded.files:
        return ending.exit_code
    if ending.exit_code:
        raise RunError(
            f"{program.target}: ended with exit code {ending.exit_code} before anything was seen; its output is above"
        )
    raise RunError(f"{program.target}: called no module that has parameters, so there was nothing to watch")


# The page of a program that runs.


def _live_page(args: argparse.Namespace, output: Path, replaced: Sequence[str]) -> LivePage | None:
    if args.page is None:
        if args.golden is not None:
            raise RunError("--golden is drawn on a page; name one with --page FILE.html")
        return None
    _need_numpy()
    _check_page(args.page)
    from torchferry.accuracy.curves.live import LivePage
    from torchferry.accuracy.curves.runs import run_files

    golden = [args.golden] if args.golden is not None else []
    taken = {path.resolve() for path in (output, *map(Path, replaced))}
    if any(path.resolve() in taken for name in golden for path in run_files(name)):
        raise RunError(f"{args.golden}: is to be drawn and overwritten at once; name another file with -o")
    earlier = {path: path.stat().st_mtime_ns for path in map(Path, replaced)}

    def is_of_before() -> bool:
        return any(path.exists() and path.stat().st_mtime_ns == moment for path, moment in earlier.items())

    return LivePage(args.page.absolute(), [output, *golden], report_options(args), is_of_before)


def _check_page(page: Path) -> None:
    if page.suffix.lower() != _PAGE:
        raise RunError(f"{page}: curves are drawn on a page; end its name in {_PAGE}")
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
    need("curves are drawn with", "numpy")


# `ferry watch show`: the curves of a file, or of two.


def run_show(words: list[str]) -> int:
    """The answer is an exit code."""
    parser = argparse.ArgumentParser(
        prog=f"{_COMMAND} {_SHOW}",
        description="Show the curves of a run, or of two with their differences; of runs that are over, or go on.",
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a file of `ferry watch`, of several ranks without .rank0"
    )
    parser.add_argument(
        "golden", type=Path, nargs="?", metavar="GOLDEN", help="the same of the run that is right"
    )
    group = parser.add_argument_group("what is shown")
    options.add_repeatable(
        group, "--module", "PATTERN", "only modules whose path fits, as layer1.*, *.attn", dest="modules"
    )
    group.add_argument(
        "--from",
        dest="first_step",
        type=options.at_least_one,
        default=1,
        metavar="STEP",
        help="the first step that is shown (default: 1); fewer steps are drawn in more detail",
    )
    options.add_steps(group, "how many steps of the program from there on (default: all)", default=None)
    group.add_argument(
        "--rank",
        type=options.whole_number(0),
        metavar="R",
        help="whose modules are shown (default: the first rank's)",
    )
    options.add_format(parser, ("text", "md", "csv", "html"))
    options.add_outputs(parser, ".txt, .md, .csv, .xlsx, .html")
    options.add_switch(
        parser, "--follow", "with -o FILE.html: write the page anew while the run goes on, until it ends"
    )
    options.add_all(parser, "list all modules")
    options.add_quiet(parser)
    options.add_language(parser)
    args = parser.parse_args(words)
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
        raise RunError("--follow writes a page anew; name one with -o FILE.html")
    live = LivePage(pages[0], list(filter(None, (args.file, args.golden))), report_options(args))
    while any(map(is_being_written, run_files(args.file))):
        with suppress(InputError):  # no whole step yet
            live.write()
        time.sleep(SECONDS)


# `ferry watch convert`: event files of TensorBoard.


def run_convert(words: list[str]) -> int:
    """The answer is an exit code."""
    parser = argparse.ArgumentParser(
        prog=f"{_COMMAND} {_CONVERT}",
        description="Write the curves of runs for TensorBoard, a folder for each run and rank.",
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a file of `ferry watch`")
    parser.add_argument(
        "--tensorboard",
        type=Path,
        required=True,
        metavar="DIR",
        help="as `tensorboard --logdir DIR` takes it",
    )
    options.add_repeatable(
        parser, "--module", "PATTERN", "only modules whose path fits, as layer1.*, *.attn", dest="modules"
    )
    options.add_quiet(parser, "do not say what was written")
    args = parser.parse_args(words)
    _need_numpy()
    from torchferry.accuracy.curves.events import export
    from torchferry.accuracy.curves.runs import WatchedRun, run_files

    files = [file for name in args.files for file in run_files(name)]
    folders = [args.tensorboard / file.stem for file in files]
    if len(set(folders)) < len(folders):
        raise InputError("two of the files have the same name; convert them into different folders")
    for file, folder in zip(files, folders, strict=True):
        run = WatchedRun(file, args.modules)
        try:
            with long_task(_CONVERTING, args.quiet, Counted.STEPS) as show:
                count = export(run, folder, show or _silent)
        finally:
            run.close()
        if not args.quiet:
            print(f"{_COMMAND}: {folder}: {count:,} curves, {len(run.steps):,} steps", file=sys.stderr)
    return 0

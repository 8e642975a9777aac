"""Read profiles of any vendor: the bottleneck by name, its proof, its remedy, and what that saves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.cli import options
from torchferry.cli.output import check_reports, deliver, need
from torchferry.errors import InputError
from torchferry.report.progress import progress_bar

if TYPE_CHECKING:
    from torchferry.perf.compare.model import Comparison
    from torchferry.perf.model import Analysis
    from torchferry.perf.report.sentences import Report
    from torchferry.perf.run import Run

# The options of `ferry analyze`.

FORMATS = ("text", "json", "md", "html")
LEVELS = ("high", "medium", "low")
TOP = 15

_EPILOG = """PATH is what `ferry profile` wrote, a trace of a profiler (.json, .json.gz), an Ascend folder (*_ascend_pt) or
trace_view.json, kernel_details.csv, operator_memory.csv, a printed table of operators, or a folder of host
logs. What belongs to one run is read together; traces of several ranks are compared with each other.

exit codes: 0 analyzed; 1 with --check: there is a finding of that severity; 2 nothing to read, or not of one run;
3 a detector broke down, the others did their work"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = "ferry analyze PATH... [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths", type=Path, nargs="*", metavar="PATH", help="a trace, a table, or a folder of them"
    )
    _add_work(parser)
    _add_output(parser)
    options.add_language(parser)


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="PATH",
        help="compare with this run operator by operator, as of a GPU or of before a change",
    )
    options.add_switch(
        parser,
        "--normalize",
        "no analysis: write the trace so that every viewer shows it right; needs -o FILE",
    )
    parser.add_argument("--rank", type=int, metavar="N", help="of several processes only this one")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="only this detector; repeat, or divide by commas",
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="ID", help="without this detector; likewise"
    )
    options.add_switch(parser, "--list-detectors", "print the detectors and what each looks for")


def _add_output(parser: argparse.ArgumentParser) -> None:
    options.add_format(parser, FORMATS)
    options.add_outputs(parser, ".txt, .json, .md, .html")
    parser.add_argument(
        "--top",
        type=options.whole_number(1, 100_000),
        default=TOP,
        metavar="N",
        help=f"rows of a table in text and Markdown (default: {TOP})",
    )
    parser.add_argument(
        "--check",
        nargs="?",
        const="high",
        choices=LEVELS,
        help="exit with 1 if there is a finding of this severity or a higher one (default: high)",
    )
    options.add_quiet(parser)


_FOUND, _SOME_FAILED = 1, 3


def run(args: argparse.Namespace) -> int:
    """Analyze, report; the answer is an exit code."""
    from torchferry.perf.report import REPORTS
    from torchferry.report.formats import Options

    need("traces are read with", *traces.LIBRARIES)
    if args.list_detectors:
        return _list_detectors()
    if not args.paths:
        raise InputError("nothing to analyze: give a trace, or the folder that `ferry profile` wrote")
    if args.normalize:
        return _normalize(args)
    wanted = _wanted(args.only, args.ignore)
    check_reports(REPORTS, args.output)
    report = _analyzed(args, wanted)
    deliver(REPORTS, report, args, Options(options.language_of(args)))
    return exit_code(report.analyses, args.check)


def exit_code(analyses: Sequence[Analysis], check: str | None) -> int:
    """3 where a detector broke down, 1 where there is a finding as severe as `check`."""
    if any(analysis.failed for analysis in analyses):
        return _SOME_FAILED
    bad = LEVELS[: LEVELS.index(check) + 1] if check else ()
    found = any(each.severity.value in bad for analysis in analyses for each in analysis.diagnoses)
    return _FOUND if found else 0


def _list_detectors() -> int:
    """What each looks for is the first line of its module."""
    from torchferry.perf import ranks
    from torchferry.perf.detect.registry import DETECTORS
    from torchferry.report.streams import reader_may_leave

    modules = {detector.id: detector.detect.__module__ for detector in DETECTORS} | {ranks.ID: ranks.__name__}
    wide = max(map(len, modules))
    with reader_may_leave():
        for name, module in modules.items():
            print(f"{name:<{wide}}  {(sys.modules[module].__doc__ or '').splitlines()[0]}")
    return 0


def _wanted(only: Sequence[str], ignore: Sequence[str]) -> Callable[[str], bool]:
    """Which detectors are to look; InputError for those that do not exist."""
    from torchferry.perf.detect.registry import DETECTORS
    from torchferry.perf.ranks import ID

    known = [*(detector.id for detector in DETECTORS), ID]
    chosen, left_out = _ids(only, known), _ids(ignore, known)
    return lambda name: (not chosen or name in chosen) and name not in left_out


def _ids(given: Sequence[str], known: Sequence[str]) -> set[str]:
    import difflib

    found = {part.strip() for text in given for part in text.split(",") if part.strip()}
    for name in sorted(found.difference(known)):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "`ferry analyze --list-detectors` names them"
        raise InputError(f"no detector {name!r}; {hint}")
    return found


def _normalize(args: argparse.Namespace) -> int:
    from torchferry.perf.normalize import normalize

    if len(args.paths) != 1 or len(args.output) != 1:
        raise InputError(
            "--normalize takes one trace and one file to write: --normalize trace_view.json -o fixed.json"
        )
    target = args.output[0]
    done = normalize(args.paths[0], target)
    if not args.quiet:
        dropped = f", {done.dropped:,} damaged ones left out" if done.dropped else ""
        repaired = "; its end was cut off and has been mended" if done.is_repaired else ""
        print(f"{target}: {done.events:,} events{dropped}{repaired}", file=sys.stderr)
    return 0


def _analyzed(args: argparse.Namespace, wanted: Callable[[str], bool]) -> Report:
    from torchferry.perf.analysis import analyze
    from torchferry.perf.opening import open_runs
    from torchferry.perf.report.sentences import Report

    with progress_bar(args.quiet, "MiB", 1 << 20) as on_progress:
        runs = _of_rank(open_runs(args.paths, on_progress), args.rank)
        baseline = open_runs([args.baseline], on_progress) if args.baseline else []
    analyses = [analyze(each, wanted) for each in runs]
    comparisons = _compared(runs, baseline)
    return Report(_with_ranks(analyses, runs, wanted), tuple(comparisons), args.top)


def _of_rank(runs: Sequence[Run], rank: int | None) -> Sequence[Run]:
    if rank is None:
        return runs
    numbers = {at: _rank(run, at) for at, run in enumerate(runs)}
    found = [runs[at] for at, number in numbers.items() if number == rank]
    if not found:
        known = ", ".join(map(str, sorted(numbers.values())))
        raise InputError(f"there is no rank {rank} in what was given; there are {known}")
    return found


def _rank(run: Run, position: int) -> int:
    number = run.rank_facts.get("rank", run.trace.rank if run.trace else None)
    return number if isinstance(number, int) else position


def _with_ranks(
    analyses: list[Analysis], runs: Sequence[Run], wanted: Callable[[str], bool]
) -> tuple[Analysis, ...]:
    """What comparing the ranks finds belongs to the one that holds up the others."""
    from torchferry.perf import ranks
    from torchferry.perf.analysis import order
    from torchferry.perf.report.sentences import slowest

    if len(analyses) > 1 and wanted(ranks.ID):
        at = slowest(analyses)
        found = sorted([*ranks.compare_ranks(runs), *analyses[at].diagnoses], key=order)
        analyses[at] = replace(analyses[at], diagnoses=tuple(found))
    return tuple(analyses)


def _compared(runs: Sequence[Run], baseline: Sequence[Run]) -> Iterator[Comparison]:
    """Each rank with its like; one of the baseline with all, if it has but one."""
    if not baseline:
        return
    from torchferry.perf.compare.comparing import compare

    others = {_rank(run, at): run for at, run in enumerate(baseline)}
    for at, each in enumerate(runs):
        other = baseline[0] if len(baseline) == 1 else others.get(_rank(each, at))
        if other is not None:
            yield compare(each, other)

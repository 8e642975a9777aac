"""Read profiles of any vendor: the bottleneck by name, its proof, its remedy, and what that saves."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.cli import options
from torchferry.cli.output import check_reports, deliver, need
from torchferry.errors import InputError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.perf.model import Analysis

LEVELS = ("high", "medium", "low")
TOP = 15

_EPILOG = """PATH is what `ferry profile` wrote, a trace of a profiler (.json, .json.gz), an Ascend folder (*_ascend_pt) or
trace_view.json, kernel_details.csv, operator_memory.csv, a printed table of operators, or a folder of host
logs. What belongs to one run is read together; traces of several ranks are compared with each other.

exit codes: 0 analyzed; 1 with --check: there is a finding of that severity; 2 nothing to read, or not of one run;
3 a detector broke down, the others did their work"""


_READING = Text("reading profiles", "正在读取性能数据")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry analyze`."""
    parser.usage = "ferry analyze PATH... [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "paths", type=Path, nargs="*", metavar="PATH", help="a trace, a table, or a folder of them"
    )
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
    options.add_format(parser, ("text", "json", "md", "html"))
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
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Analyze, report; the answer is an exit code."""
    need("traces are read with", *traces.LIBRARIES)
    if args.list_detectors:
        return _list_detectors()
    if not args.paths:
        raise InputError("nothing to analyze: give a trace, or the folder that `ferry profile` wrote")
    if args.normalize:
        return _normalize(args)
    from torchferry.perf.analysis import analyze_paths
    from torchferry.perf.report import REPORTS

    check_reports(REPORTS, args.output)
    with long_task(_READING, args.quiet, Counted.BYTES, options.language_of(args)) as on_progress:
        report = analyze_paths(
            args.paths, args.baseline, args.rank, args.only, args.ignore, args.top, on_progress
        )
    deliver(REPORTS, report, args)
    return exit_code(report.analyses, args.check)


def exit_code(analyses: Sequence[Analysis], check: str | None) -> int:
    """3 where a detector broke down, 1 where there is a finding as severe as `check`."""
    if any(analysis.failed for analysis in analyses):
        return 3
    bad = LEVELS[: LEVELS.index(check) + 1] if check else ()
    return int(any(each.severity.value in bad for analysis in analyses for each in analysis.diagnoses))


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

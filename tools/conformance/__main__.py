"""Command line of the conformance suite.

    python -m tools.conformance --vendor ascend -o result.json
    python -m tools.conformance --vendor ascend --ops 'nn.functional.*' --dtypes float32,float16
    python -m tools.conformance --vendor ascend --emulate -o result.json
    python -m tools.conformance --self-check        # the CPU compared with itself: what the suite itself gets wrong

Exit codes: 0 done, 1 a dtype, or all, are under the bar (--fail-under, --equal), 2 bad usage or no device.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
import time
from pathlib import Path

import torch

import torchferry
from torchferry.vendors.registry import vendor_names

from .operators import DTYPES, is_elsewhere, operator_names, supports
from .pool import Job, Settings, StartError, run_jobs
from .records import Run, equal_rate, pass_rate
from .summary import Progress, differing, table


def main(argv: list[str] | None = None) -> int:
    """Run, print, write."""
    parser = _parser()
    options = parser.parse_args(argv)
    if bool(options.vendor) == options.self_check:
        parser.error("name a --vendor, or use --self-check")
    dtypes = options.dtypes.split(",")
    if unknown := sorted(set(dtypes) - set(DTYPES)):
        parser.error(f"unknown dtype {', '.join(unknown)}; known: {', '.join(DTYPES)}")
    bars = _bars(options.fail_under, parser)
    jobs = [
        Job(name, dtype)
        for dtype in dtypes
        for name in operator_names(options.ops)
        if supports(name, getattr(torch, dtype)) or (is_elsewhere(name) and dtype == dtypes[0])
    ]
    if not jobs:
        parser.error(f"no operator matches {options.ops}")
    settings = Settings(options.vendor or "", options.emulate, options.samples, options.timeout)
    try:
        run = _run(jobs, settings, options.jobs)
    except StartError as error:
        print(error, file=sys.stderr)
        return 2
    print(differing(run))
    print(table(run))
    equal = equal_rate(list(run.results))
    print(f"{equal:.2f} % of the comparisons without out= give the CPU's results, however they lie in memory")
    if options.emulate:
        print(f"{sum(result.refused for result in run.results)} more are refused by the toolkit's limits")
    if options.output:
        run.write(options.output)
    rates = {dtype: pass_rate(run.of_dtype(dtype)) for dtype in run.dtypes()}
    return int(
        equal < options.equal
        or any(rate < bars.get(dtype, bars.get("", 0.0)) for dtype, rate in rates.items())
    )


def _run(jobs: list[Job], settings: Settings, workers: int) -> Run:
    began = time.monotonic()
    results = run_jobs(jobs, settings, workers, Progress(len(jobs)))
    return Run(
        vendor=settings.vendor,
        torch=torch.__version__,
        python=platform.python_version(),
        torchferry=torchferry.__version__,
        date=datetime.date.today().isoformat(),
        seconds=round(time.monotonic() - began, 1),
        samples=settings.samples,
        results=tuple(results),
    )


def _bars(text: str, parser: argparse.ArgumentParser) -> dict[str, float]:
    """dtype -> least percentage; the empty dtype stands for all others."""
    bars: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        dtype, _, number = part.rpartition("=")
        try:
            bars[dtype] = float(number)
        except ValueError:
            parser.error(f"--fail-under takes numbers, not {number!r}")
    return bars


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.conformance",
        description="compares the simulated or emulated device with the CPU on PyTorch's own samples",
    )
    parser.add_argument("--vendor", choices=vendor_names(), help="whose device; its limits are lifted")
    parser.add_argument("--emulate", action="store_true", help="compare the vendor's own plugin, emulated")
    parser.add_argument("--self-check", action="store_true", help="compare the CPU with itself")
    parser.add_argument("--ops", default="*", metavar="PATTERN", help="e.g. 'fft.*,conv*' (default: all)")
    parser.add_argument("--dtypes", default=",".join(DTYPES), metavar="A,B", help="default: %(default)s")
    parser.add_argument("--samples", type=int, default=20, metavar="N", help="at most so many an operator")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="worker processes")
    parser.add_argument(
        "--timeout", type=float, default=180.0, metavar="S", help="seconds for an operator in one dtype"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument(
        "--equal",
        type=float,
        default=0.0,
        metavar="PERCENT",
        help="exit with 1 if fewer comparisons are equal",
    )
    parser.add_argument(
        "--fail-under",
        default="",
        metavar="PERCENT",
        help="exit with 1 if fewer operators pass: 99, or by dtype: float32=99.4,98",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

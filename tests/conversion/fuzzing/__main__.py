"""Convert made-up modules: `python -m tests.conversion.fuzzing -n 10000 --start 0`; seeds of what goes wrong are printed."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter

from tests.conversion.fuzzing.cases import make_case
from tests.conversion.fuzzing.checks import Result, check

_WORTH_TELLING = (Result.BROKEN, Result.GIVEN_UP, Result.OPTION_LEFT_OUT)


def main() -> int:
    """Exit with 1 if something is broken, or more than one file in 10,000 was given up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1000, help="how many modules")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--show", action="store_true", help="print the modules, too")
    parser.add_argument("--progress", action="store_true", help="say how far it is, also without a terminal")
    args = parser.parse_args()
    counts: Counter[Result] = Counter()
    slowest = 0.0
    for seed in range(args.start, args.start + args.n):
        case = make_case(seed)
        begin = time.process_time()
        result, reason = check(case)
        slowest = max(slowest, time.process_time() - begin)
        counts[result] += 1
        if result in _WORTH_TELLING:
            print(
                f"{result.value}: seed {seed} --to {case.to} {' '.join(case.options)}: {reason}", flush=True
            )
        if args.show:
            sys.stdout.buffer.write(case.data + b"\n" + b"-" * 40 + b"\n")
        if seed % 500 == 0:
            gc.collect()
            if sys.stderr.isatty() or args.progress:
                print(f"{sum(counts.values())} modules", file=sys.stderr, flush=True)
    figures = ", ".join(f"{counts[result]} {result.value}" for result in Result)
    print(f"{args.n} modules: {figures}; slowest {slowest:.2f} s CPU")
    return int(bool(counts[Result.BROKEN]) or counts[Result.GIVEN_UP] * 10_000 > args.n)


if __name__ == "__main__":
    sys.exit(main())

"""Prints where the simulated device and the vendor's own plugin, emulated, differ on the same programs.

python -m tools.judge --to ascend                     a line for each difference
python -m tools.judge --to ascend --only 'memory:*'   some programs
python -m tools.judge --to ascend --layer             TorchFerry's layer against the vendor's own migration instead
python -m tools.judge --to ascend --write             the tables of docs/en/how-it-works/emulated.md and docs/zh/how-it-works/emulated.md, too

Differences that are known have a reason in tools/judge/reasons.toml. Exit codes: 0 none but those, 1 others, or one of
those is gone; 2 bad usage.
"""

from __future__ import annotations

import argparse
import sys

from .comparison import CUDA_NAMES, DEVICES, Difference, compare, known_reasons, unexplained
from .tables import write_tables


def main(arguments: list[str] | None = None) -> int:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", default="ascend", metavar="VENDOR", help="default: %(default)s")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="programs by name")
    parser.add_argument("--layer", action="store_true", help="compare what CUDA's names mean")
    parser.add_argument("--write", action="store_true", help="make the tables of the docs anew")
    options = parser.parse_args(arguments)
    places = CUDA_NAMES if options.layer else DEVICES
    verdict = compare(options.to, options.only, places)
    for difference in verdict.differences:
        print(_shown(difference, places))
    print(f"{verdict.programs} programs, {len(verdict.differences)} differ")
    if options.write:
        write_tables(verdict, places)
    wrong = unexplained(verdict, known_reasons(places), is_whole=options.only == "*")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def _shown(difference: Difference, places: tuple[str, str]) -> str:
    ours, theirs = places
    return f"{difference.program}\n  {difference.what}\n    {ours}: {difference.ours}\n    {theirs}: {difference.theirs}"


if __name__ == "__main__":
    sys.exit(main())

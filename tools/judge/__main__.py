"""Prints where the simulated device and the vendor's own plugin, emulated, differ on the same programs.

python -m tools.judge --to ascend                     a line for each difference
python -m tools.judge --to ascend --only 'memory:*'   some programs
python -m tools.judge --to ascend --write             the tables of docs/en/emulated.md and docs/zh/emulated.md, too

Differences that are known have a reason in tools/judge/reasons.toml. Exit codes: 0 none but those, 1 others, or one of
those is gone; 2 bad usage.
"""

from __future__ import annotations

import argparse
import sys

from .comparison import Difference, compare, known_reasons, unexplained
from .tables import write_tables


def main(arguments: list[str] | None = None) -> int:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", default="ascend", metavar="VENDOR", help="default: %(default)s")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="programs by name")
    parser.add_argument("--write", action="store_true", help="make the tables of the docs anew")
    options = parser.parse_args(arguments)
    verdict = compare(options.to, options.only)
    for difference in verdict.differences:
        print(_shown(difference))
    print(f"{verdict.programs} programs, {len(verdict.differences)} differ")
    if options.write:
        write_tables(verdict)
    wrong = unexplained(verdict, known_reasons(), is_whole=options.only == "*")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def _shown(difference: Difference) -> str:
    return f"{difference.program}\n  {difference.what}\n    simulated: {difference.simulated}\n    plugin:    {difference.plugin}"


if __name__ == "__main__":
    sys.exit(main())

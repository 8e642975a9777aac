"""The progress line and the table at the end."""

from __future__ import annotations

import sys
from collections import Counter

from .records import Outcome, Result, Run, pass_rate

_WIDTH = 100


class Progress:
    """One line on the error output: rewritten on a terminal, else printed now and then."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.counts: Counter[Outcome] = Counter()
        self.is_terminal = sys.stderr.isatty()

    def __call__(self, result: Result) -> None:
        """One more result."""
        self.counts[result.outcome] += 1
        done = self.counts.total()
        counts = ", ".join(f"{self.counts[outcome]} {outcome.value}" for outcome in Outcome)
        line = f"{done}/{self.total}: {counts}; {result.operator} {result.dtype}"[:_WIDTH]
        if self.is_terminal:
            end = "\n" if done == self.total else ""
            print(f"\r{line:{_WIDTH}}", end=end, file=sys.stderr, flush=True)
        elif done % 100 == 0 or done == self.total:
            print(line, file=sys.stderr, flush=True)


def table(run: Run) -> str:
    """Counts and rate of every dtype."""
    heads = ["dtype", *(outcome.value for outcome in Outcome), "passing", "checks", "upcast"]
    rows = []
    for dtype in run.dtypes():
        results = run.of_dtype(dtype)
        counts = Counter(result.outcome for result in results)
        checks = sum(result.checks for result in results)
        upcast = sum(result.upcast for result in results)
        numbers = [str(counts[outcome]) for outcome in Outcome]
        rows.append([dtype, *numbers, f"{pass_rate(results):.2f} %", str(checks), str(upcast)])
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in [heads, *rows]
    )


def differing(run: Run) -> str:
    """Every result that is not a plain pass, with its first difference."""
    lines = []
    for result in run.results:
        if result.outcome in (Outcome.CLOSE, Outcome.FAIL):
            lines.append(f"{result.outcome.value}: {result.operator} {result.dtype}: {result.differences[0]}")
        elif result.outcome is Outcome.CRASH:
            lines.append(f"crash: {result.operator} {result.dtype}: {result.reason}")
    return "\n".join(lines)

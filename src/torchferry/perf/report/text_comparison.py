"""Two runs side by side, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchferry.perf.compare.model import Comparison, Cost, Match, OperatorPair
from torchferry.perf.report import sentences, words
from torchferry.perf.report.text_parts import Lines, listing, plain
from torchferry.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType


def comparison_lines(comparison: Comparison, lines: Lines) -> list[RenderableType]:
    """The verdict, the parts side by side, and the operators."""
    found: list[RenderableType] = ["", plain(lines.say(words.COMPARISON), "bold")]
    found += [plain(f"  {lines.say(text)}") for text in sentences.comparison(comparison)]
    found += _parts(comparison, lines)
    found += _pairs(words.PAIRS, comparison.pairs, lines)
    found += _pairs(words.ONLY_COMPARED, comparison.only_compared, lines)
    found += _pairs(words.ONLY_BASELINE, comparison.only_baseline, lines)
    return found + [plain(f"{lines.say(words.NOTE)}: {lines.say(note)}", "dim") for note in comparison.notes]


def _parts(comparison: Comparison, lines: Lines) -> list[RenderableType]:
    rows = [
        (
            lines.say(sentences.part_names(comparison)[part]),
            sentences.duration(other),
            sentences.duration(mine),
            sentences.signed(mine - other),
        )
        for part, other, mine in sentences.part_rows(comparison)
    ]
    heads = (words.PER_STEP, words.BASELINE, words.COMPARED, words.MORE)
    return ["", *listing(lines, heads, rows, numbers=3)] if rows else []


def _pairs(title: Text, pairs: Sequence[OperatorPair], lines: Lines) -> list[RenderableType]:
    if not pairs:
        return []
    rows = [_row(pair, lines) for pair in pairs]
    heads = (
        words.OPERATOR,
        words.SHAPES,
        words.HOW,
        words.PLACE,
        words.BASELINE,
        words.COMPARED,
        words.MORE,
        words.RATIO,
    )
    return ["", plain(f"{lines.say(title)} ({len(pairs)})", "bold"), *listing(lines, heads, rows, numbers=4)]


def _row(pair: OperatorPair, lines: Lines) -> tuple[str, ...]:
    in_both = pair.baseline is not None and pair.compared is not None
    return (
        names(pair),
        shapes(pair),
        lines.say(words.MATCH[pair.match]) if in_both and pair.match is not Match.EXACT else "",
        sentences.place(pair.place),
        cost(pair.baseline),
        cost(pair.compared),
        sentences.signed(pair.more) if in_both else "",
        f"{pair.ratio:.2f}" if pair.ratio is not None else "",
    )


def names(pair: OperatorPair) -> str:
    """In both runs, where they differ."""
    other = pair.baseline_operator
    return f"{pair.operator} = {other}" if other and other != pair.operator else pair.operator


def shapes(pair: OperatorPair) -> str:
    """Shapes and types, and the baseline's where they differ."""
    mine = " ".join(filter(None, [pair.shapes, pair.dtypes]))
    other = " ".join(filter(None, [pair.baseline_shapes, pair.baseline_dtypes]))
    return f"{mine} = {other}" if other and other != mine else mine


def cost(found: Cost | None) -> str:
    """Time and calls."""
    return f"{sentences.duration(found.seconds)} ×{found.calls:g}" if found is not None else ""

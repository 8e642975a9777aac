"""The page's comparison with the baseline: the parts side by side, and operator by operator."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.perf.compare.model import Comparison, OperatorPair
from torchferry.perf.report import sentences, words
from torchferry.perf.report.html_parts import quiet
from torchferry.perf.report.html_tables import Cell, Column, long_table
from torchferry.perf.report.text_comparison import names, shapes
from torchferry.report.markup import both, escaped, row, table
from torchferry.text import Text


def comparison_section(comparison: Comparison, number: int) -> str:
    """One rank's."""
    said = "".join(both(text, "p") for text in sentences.comparison(comparison))
    notes = "".join(quiet(note) for note in comparison.notes)
    tables = "".join(
        f"<h3>{both(title)}</h3>{_pairs(f'{name}-{number}', pairs)}"
        for name, title, pairs in (
            ("pairs", words.PAIRS, comparison.pairs),
            ("only-compared", words.ONLY_COMPARED, comparison.only_compared),
            ("only-baseline", words.ONLY_BASELINE, comparison.only_baseline),
        )
        if pairs
    )
    return (
        f'<section class="comparison" id="comparison-{number}"><h2>{both(words.COMPARISON)}</h2>{said}{_parts(comparison)}'
        f"{tables}{notes}</section>"
    )


def _parts(comparison: Comparison) -> str:
    rows = [
        row(
            [
                both(sentences.part_names(comparison)[part]),
                escaped(sentences.duration(other)),
                escaped(sentences.duration(mine)),
                escaped(sentences.signed(mine - other)),
            ]
        )
        for part, other, mine in sentences.part_rows(comparison)
    ]
    heads = [words.PER_STEP, words.BASELINE, words.COMPARED, words.MORE]
    return table(heads, rows, "rules sides") if rows else ""


def _pairs(anchor: str, pairs: Sequence[OperatorPair]) -> str:
    columns = [
        Column(words.OPERATOR, "code"), Column(words.SHAPES, "text"), Column(words.HOW, "both"),
        Column(words.PLACE, "code"), Column(Text("Calls, baseline", "基线调用次数"), "count"), Column(words.CALLS, "count"),
        Column(words.BASELINE, "time"), Column(words.COMPARED, "time"), Column(words.MORE, "more"),
        Column(words.RATIO, "ratio"),
    ]  # fmt: skip
    return long_table(anchor, columns, [_row(pair) for pair in pairs], 8)


def _row(pair: OperatorPair) -> list[Cell]:
    other, mine = pair.baseline, pair.compared
    return [
        names(pair),
        shapes(pair),
        words.MATCH[pair.match] if other and mine else None,
        sentences.place(pair.place),
        other.calls if other else None,
        mine.calls if mine else None,
        other.seconds if other else None,
        mine.seconds if mine else None,
        pair.more,
        pair.ratio,
    ]

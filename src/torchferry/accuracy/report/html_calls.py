"""The page's table of calls: the data from which the script fills pages of it, and the worst of them for readers without."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from typing import Any, TypeVar

from torchferry.accuracy.compare.model import Comparison, Difference, Pair, Verdict
from torchferry.accuracy.report import sentences, words
from torchferry.accuracy.report.html_parts import TONES, badge, quiet
from torchferry.report.html import embed
from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line
from torchferry.text import Text

_STATIC_ROWS = 50
_DETAILED = 30_000  # tensors whose figures are in the page; the CSV has all
_HEADS = (
    (words.NUMBER, "number"), (words.OPERATOR, "text"), (words.VERDICT_COLUMN, "verdict"), (words.OWN_ERROR, "number"),
    (words.GOLDEN_ERROR, "number"), (words.LIMIT, "number"), (words.STEP, "number"), (words.PHASE_COLUMN, "text"),
    (words.MODULE, "text"), (words.PLACE, "text"), (words.PICTURE_COLUMN, "text"),
)  # fmt: skip
_FIGURES = ("cosine", "max_abs", "max_rel", "relative_euclidean", "within_thousandth", "mean_ulp", "bias")
_FIGURE_WORDS = (
    words.COSINE, words.MAX_ABS, words.MAX_REL, Text("Rel. Euclidean", "相对欧氏距离"), Text("Within 1e-3", "千分之一内"),
    Text("Mean ULP", "平均 ULP"), Text("Bias", "偏差"),
)  # fmt: skip
Value = TypeVar("Value")


def calls_section(comparisons: Sequence[Comparison]) -> str:
    """The section."""
    count = sum(len(comparison.pairs) for comparison in comparisons)
    heads = "".join(f'<th scope="col" data-sort="{kind}">{both(text)}</th>' for text, kind in _HEADS)
    rank = {verdict: at for at, verdict in enumerate(sentences.WORST_FIRST)}
    pairs = (pair for comparison in comparisons for pair in comparison.pairs)
    worst = nsmallest(_STATIC_ROWS, pairs, key=lambda pair: rank[pair.judgement.verdict])
    body = "".join(map(_static, worst))
    pager = (
        f'<p class="pager" hidden><button type="button" class="plain" id="previous">{both(words.PREVIOUS)}</button> '
        f'<span id="page" class="quiet"></span> '
        f'<button type="button" class="plain" id="following">{both(words.FOLLOWING)}</button></p>'
    )
    return (
        f'<section id="calls"><h2>{both(words.CALLS)}<span class="count">{count:,}</span></h2>{_filters(comparisons)}'
        f'<noscript>{quiet(words.NO_SCRIPT)}</noscript><div class="scroll"><table class="rules calls"><thead><tr>{heads}'
        f"</tr></thead><tbody>{body}</tbody></table></div>{pager}"
        f'<script type="application/json" id="data">{embed(_data(comparisons))}</script></section>'
    )


def _filters(comparisons: Sequence[Comparison]) -> str:
    """For the script; hidden without it."""
    found = {verdict for each in comparisons for verdict in sentences.verdict_counts(each)}
    count = sum(len(comparison.pairs) for comparison in comparisons)
    chips = "".join(
        f'<button type="button" class="chip {TONES[verdict]}" data-verdict="{verdict.value}" aria-pressed="false">'
        f"{both(words.VERDICT[verdict])}</button>"
        for verdict in sentences.WORST_FIRST
        if verdict in found
    )
    counted = words.SHOWN.format(shown="%", count=count)
    return (
        f'<form class="filters" role="search" hidden><label class="quiet" for="query">{both(words.SEARCH)}</label>'
        f'<input type="search" id="query" autocomplete="off" spellcheck="false"><div class="chips">{chips}</div>'
        f'<button type="button" class="chip info" id="chosen" hidden></button>'
        f'<button type="button" class="plain" id="clear">{both(words.CLEAR)}</button>'
        f'<span class="quiet" id="shown" role="status">{both(counted)}</span></form>'
    )


def _static(pair: Pair) -> str:
    call, judgement = sentences.call_of(pair), pair.judgement
    phase = words.PHASE.get(call.phase, Text(one_line(call.phase), one_line(call.phase)))
    sort = words.SORT[judgement.sort]
    cells = [
        str(call.number),
        f"<code>{escaped(one_line(call.operator))}</code>",
        badge(judgement.verdict) + (f"<br>{both(sort)}" if sort.en else "")
        if sentences.is_judged(pair)
        else "",
        *(
            escaped(sentences.number(each)) if each is not None else ""
            for each in (judgement.own_error, judgement.golden_error, judgement.limit)
        ),
        str(call.step),
        both(phase),
        f"<code>{escaped(sentences.module_of(call))}</code>",
        f"<code>{escaped(one_line(call.place))}</code>",
        f'<code class="picture">{escaped(sentences.picture(pair))}</code>',
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


class _Table:
    """Values that are named by their position."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self.values.setdefault(value, len(self.values))


def _data(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """All calls, packed: texts are stored once and named by their position."""
    texts, pairs_of_texts = _Table(), _Table()
    budget = iter(range(_DETAILED))
    rows = [
        _row(pair, comparison.mine.rank if len(comparisons) > 1 else None, texts, pairs_of_texts, budget)
        for comparison in comparisons
        for pair in comparison.pairs
    ]
    return {
        "verdicts": [
            [verdict.value, *words.VERDICT[verdict], TONES[verdict]] for verdict in sentences.WORST_FIRST
        ],
        "phases": {name: list(text) for name, text in words.PHASE.items()},
        "how": {name: list(text) for name, text in words.HOW.items()},
        "figures": [list(text) for text in _FIGURE_WORDS],
        "words": {
            "why": list(words.WHY),
            "match": list(words.HOW_COLUMN),
            "tensor": list(words.TENSOR),
            "picture": list(words.PICTURE_COLUMN),
        },
        "texts": list(texts.values),
        "pairs": [list(text) for text in pairs_of_texts.values],
        "rows": rows,
    }


def _row(pair: Pair, rank: int | None, texts: _Table, pairs: _Table, budget: Iterator[int]) -> list[Any]:
    call, judgement = sentences.call_of(pair), pair.judgement
    golden = (
        pair.golden.operator if pair.mine and pair.golden and pair.golden.operator != call.operator else ""
    )
    names = [f"rank {rank}"] if rank is not None else []
    names += [each for each in (call.model, *sentences.path_in_model(call).split(".")) if each]
    errors = [_figure(each) for each in (judgement.own_error, judgement.golden_error, judgement.limit)]
    return [
        call.number,
        texts(one_line(call.operator)),
        sentences.WORST_FIRST.index(judgement.verdict) if sentences.is_judged(pair) else -1,
        pairs(words.SORT[judgement.sort]),
        errors,
        call.step,
        texts(one_line(call.phase)),
        texts(one_line("/".join(names))),
        texts(sentences.module_of(call)),
        texts(one_line(call.place)),
        texts(sentences.picture(pair)),
        pairs(Text(*map(one_line, judgement.why or ("", "")))),
        texts(pair.how),
        texts(one_line(golden)),
        [
            _tensor(each, texts)
            for each in (*pair.inputs, *pair.outputs)
            if judgement.verdict in _SHOWN_ALWAYS or next(budget, None) is not None
        ],
    ]


_SHOWN_ALWAYS = (Verdict.PROGRAM, Verdict.FAULT, Verdict.SUSPICIOUS, Verdict.UNEXPLAINED)


def _tensor(difference: Difference, texts: _Table) -> list[Any]:
    metrics = difference.metrics
    figures = [_figure(getattr(metrics, name)) for name in _FIGURES] if metrics else None
    name = f"{one_line(difference.mine.name)} {sentences.described(difference.mine)}"
    return [texts(name), figures, texts(one_line(difference.picture)), texts(one_line(difference.reason))]


def _figure(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)

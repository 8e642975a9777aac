"""A comparison as one self-contained page: verdict, curves, modules, steps, calls. The script adds pages and filters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, TypeVar

from torchferry import units
from torchferry.accuracy.compare.model import NetworkCurve, Numbered, RankComparison
from torchferry.accuracy.judge.model import CallPair, PairDifference, Verdict
from torchferry.accuracy.model import Call, RecordHeader
from torchferry.accuracy.report import sentences, words
from torchferry.report.bodies import PageBody
from torchferry.report.formats import Options
from torchferry.report.html import (
    ARROW,
    CHARTS,
    CHARTS_STYLE,
    CONTROLS,
    ELEMENTS,
    badge,
    both,
    chips,
    code,
    data_for_script,
    escaped,
    facts,
    filters,
    in_table_order,
    pager,
    quiet,
    row,
    scrolled,
    section,
    sortable_head,
    table,
    tree_tools,
)
from torchferry.report.page import AND_MORE
from torchferry.report.provenance import short_path
from torchferry.report.safe import one_line
from torchferry.report.svg import Chart, Points, chart_of, difference_of, figure
from torchferry.text import Text

# The page's table of calls: the data from which the script fills pages of it, and the worst of them for readers without.

_STATIC_ROWS = 50
_DETAILED = 30_000  # tensors whose figures are in the page; the CSV has all
_HEADS = (
    (words.NUMBER, "number"), (words.OPERATOR, "text"), (words.VERDICT_COLUMN, "verdict"), (words.OWN_ERROR, "number"),
    (words.GOLDEN_ERROR, "number"), (words.LIMIT, "number"), (words.STEP, "number"), (words.PHASE_COLUMN, "text"),
    (words.MODULE, "text"), (words.PLACE, "text"), (words.PICTURE_COLUMN, "text"),
)  # fmt: skip
_NUMBERS = frozenset(at for at, (_, kind) in enumerate(_HEADS) if kind == "number")
_FIGURES = ("cosine", "max_abs", "max_rel", "relative_euclidean", "within_thousandth", "mean_ulp", "bias")
_FIGURE_WORDS = (
    words.COSINE, words.MAX_ABS, words.MAX_REL, Text("Rel. Euclidean", "相对欧氏距离"), Text("Within 1e-3", "千分之一内"),
    Text("Mean ULP", "平均 ULP"), Text("Bias", "偏差"),
)  # fmt: skip
Value = TypeVar("Value")


def calls_section(comparisons: Sequence[RankComparison]) -> str:
    """The table of calls, with its filters."""
    count = sum(len(comparison.pairs) for comparison in comparisons)
    pairs = (pair for comparison in comparisons for pair in comparison.pairs)
    worst = nsmallest(_STATIC_ROWS, pairs, key=lambda pair: words.RANK_OF[pair.judgement.verdict])
    body = "".join(map(_static, worst))
    shown = scrolled(f"{sortable_head(_HEADS)}<tbody>{body}</tbody>", "rules calls")
    content = (
        f"{_filters(comparisons, count)}<noscript>{quiet(words.NO_SCRIPT)}</noscript>"
        f"{shown}{pager()}{data_for_script(_data(comparisons), 'data')}"
    )
    return section(words.CALLS, content, "calls", count=count)


def _filters(comparisons: Sequence[RankComparison], count: int) -> str:
    found = {verdict for each in comparisons for verdict in sentences.verdict_counts(each)}
    verdicts = [(verdict.value, grade) for verdict, grade in in_table_order(found, words.VERDICT)]
    chosen = (
        f'<div class="chips">{chips(verdicts, "verdict")}</div>'
        '<button type="button" class="chip info chosen" id="chosen" hidden></button>'
    )
    return filters(words.SEARCH, chosen, words.SHOWN.format(shown="%", count=count))


def _static(pair: CallPair) -> str:
    call, judgement = sentences.call_of(pair), pair.judgement
    sort = words.SORT[judgement.sort]
    verdict = badge(words.VERDICT[judgement.verdict]) + (f"<br>{both(sort)}" if sort.en else "")
    return row(
        [
            str(call.number),
            code(call.operator),
            verdict if sentences.is_judged(pair) else "",
            *(escaped(units.short_number(each)) if each is not None else "" for each in judgement.errors),
            str(call.step),
            both(words.phase(call.phase)),
            code(sentences.module_of(call)),
            code(call.place),
            f'<code class="picture">{escaped(sentences.picture(pair))}</code>',
        ],
        numbers=_NUMBERS,
    )


def _data(comparisons: Sequence[RankComparison]) -> dict[str, Any]:
    """All calls, packed: texts are stored once and named by their position."""
    texts, pairs_of_texts = Numbered(), Numbered()
    budget = iter(range(_DETAILED))
    rows = [
        _row(pair, comparison.mine.rank if len(comparisons) > 1 else None, texts, pairs_of_texts, budget)
        for comparison in comparisons
        for pair in comparison.pairs
    ]
    return {
        "verdicts": [
            [verdict.value, *grade.name, grade.kind, grade.sign] for verdict, grade in words.VERDICT.items()
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
        "texts": texts.values,
        "pairs": [list(text) for text in pairs_of_texts.values],
        "rows": rows,
    }


def _row(
    pair: CallPair, rank: int | None, texts: Numbered, pairs: Numbered, budget: Iterator[int]
) -> list[Any]:
    call, judgement = sentences.call_of(pair), pair.judgement
    has_other = pair.mine and pair.golden and pair.golden.operator != call.operator
    golden = pair.golden.operator if pair.golden and has_other else ""
    return [
        call.number,
        texts(one_line(call.operator)),
        words.RANK_OF[judgement.verdict] if sentences.is_judged(pair) else -1,
        pairs(words.SORT[judgement.sort]),
        list(map(_figure, judgement.errors)),
        call.step,
        texts(one_line(call.phase)),
        texts(one_line("/".join(_branch(call, rank)))),
        texts(sentences.module_of(call)),
        texts(one_line(call.place)),
        texts(sentences.picture(pair)),
        pairs(Text(*map(one_line, judgement.why or ("", "")))),
        texts(pair.how),
        texts(one_line(golden)),
        [
            _tensor(each, texts)
            for each in (*pair.inputs, *pair.outputs)
            if judgement.verdict in sentences.BAD or next(budget, None) is not None
        ],
    ]


def _branch(call: Call, rank: int | None) -> list[str]:
    """Where a call stands in the tree of modules: rank if there are several, model, path."""
    names = [f"rank {rank}"] if rank is not None else []
    return names + [each for each in (call.model, *sentences.path_in_model(call).split(".")) if each]


def _tensor(difference: PairDifference, texts: Numbered) -> list[Any]:
    metrics = difference.metrics
    figures = [_figure(getattr(metrics, name)) for name in _FIGURES] if metrics else None
    name = f"{one_line(difference.mine.name)} {sentences.described(difference.mine)}"
    return [texts(name), figures, texts(one_line(difference.picture)), texts(one_line(difference.reason))]


def _figure(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


# The page's curves: loss and gradient norm of both sides over the steps.

_MAX_ROWS = 500  # of the table of values


def curves_section(comparisons: Sequence[RankComparison]) -> str:
    """The curves of all ranks; nothing if no record has several steps."""
    drawn = [
        _curve_figure(curve, sentences.label(comparison, comparisons))
        for comparison in comparisons
        for curve in comparison.curves
    ]
    if not drawn:
        return ""
    return section(words.CURVES, f'<div class="figures">{"".join(drawn)}</div>', "curves")


def _curve_figure(curve: NetworkCurve, label: Text | None) -> str:
    name = words.CURVE.get(curve.name, Text(curve.name, curve.name))
    title = Text(f"{label.en}: {name.en}", f"{label.zh}：{name.zh}") if label else name
    sides: list[Points] = [
        {step: value for step, value in zip(curve.steps, values, strict=True) if value is not None}
        for values in (curve.golden, curve.mine)
    ]
    rows = [
        row([str(step), units.short_number(mine), units.short_number(golden)])
        for step, mine, golden in zip(curve.steps, curve.mine, curve.golden, strict=True)
    ]
    values = table([words.STEP, words.MINE, words.GOLDEN], rows[:_MAX_ROWS])
    details = f"<details><summary>{both(words.VALUE)}</summary>{values}</details>"
    return _with_difference(chart_of(title, (words.GOLDEN, words.MINE), sides), details)


def _with_difference(chart: Chart, below: str) -> str:
    apart = difference_of(chart)
    return figure(chart, "h3", below) + (figure(apart) if apart else "")


# The page's tree of modules, each in the colour of the worst call below it; and the matrix of steps and phases.

_OPEN_DEPTH = 2  # modules without a problem are open down to here; those with one are open
_MAX_STEPS = 200
_PHASES = ("forward", "backward", "optimizer")


@dataclass
class ModuleBranch:
    """A module: the calls in it and below, by their verdicts."""

    name: str
    path: str  # as the table's filter takes it
    counts: Counter[Verdict] = field(default_factory=Counter)
    children: dict[str, ModuleBranch] = field(default_factory=dict)

    @property
    def worst(self) -> Verdict:
        return min(self.counts, key=words.RANK_OF.__getitem__)


def module_tree(comparisons: Sequence[RankComparison]) -> ModuleBranch:
    """All calls, by rank if there are several, model, and path."""
    root = ModuleBranch("", "")
    several = len(comparisons) > 1
    for comparison in comparisons:
        for pair in comparison.pairs:
            if pair.mine is None:
                continue
            node = root
            node.counts[pair.judgement.verdict] += 1
            for name in _branch(pair.mine, comparison.mine.rank if several else None):
                place = f"{node.path}/{name}" if node.path else name
                node = node.children.setdefault(name, ModuleBranch(name, place))
                node.counts[pair.judgement.verdict] += 1
    return root


def tree_section(comparisons: Sequence[RankComparison]) -> str:
    """The modules, each in the colour of the worst call in it or below."""
    root = module_tree(comparisons)
    if not root.counts:
        return ""
    content = f'{quiet(words.TREE_HELP)}{tree_tools()}<div class="scroll"><div class="tree">{_node(root, 0)}</div></div>'
    return section(words.MODULES, content, "modules")


def _node(node: ModuleBranch, depth: int) -> str:
    is_bad = node.worst in sentences.BAD
    grade = words.VERDICT[node.worst]
    name = f"<b>{escaped(one_line(node.name))}</b>" if node.path else both(words.WHOLE_PROGRAM, "b")
    link = f'<button type="button" class="plain module" data-module="{escaped(one_line(node.path))}">{name}</button>'
    counts = "".join(
        f'<span class="tally {each.kind}"><i aria-hidden="true">{each.sign}</i> {node.counts[verdict]:,}'
        f'<span class="hush">{both(each.name)}</span></span>'
        for verdict, each in in_table_order(node.counts, words.VERDICT)
    )
    line = f'<span class="what">{link}</span>{badge(grade)}<span class="counts">{counts}</span>'
    tone = f"line {grade.kind}{' bad' if is_bad else ''}"
    if not node.children:
        return f'<div class="{tone} leaf">{line}</div>'
    is_open = is_bad or depth < _OPEN_DEPTH
    below = "".join(_node(child, depth + 1) for child in node.children.values())
    return (
        f'<details{" open" if is_open else ""}><summary class="{tone}">{line}</summary>'
        f'<div class="below">{below}</div></details>'
    )


def steps_section(comparisons: Sequence[RankComparison]) -> str:
    """Steps against phases: the worst verdict and the number of calls of each."""
    cells: dict[tuple[int, str], Counter[Verdict]] = {}
    for comparison in comparisons:
        for pair in comparison.pairs:
            if pair.mine is not None:
                key = (pair.mine.step, pair.mine.phase)
                cells.setdefault(key, Counter())[pair.judgement.verdict] += 1
    steps = sorted({step for step, _ in cells})
    phases = [phase for phase in _PHASES if any(phase == each for _, each in cells)]
    phases += sorted({phase for _, phase in cells} - set(phases))
    if not cells:
        return ""
    heads = row(map(both, [words.STEP, *map(words.phase, phases)]), "th")
    rows = "".join(_step(step, phases, cells) for step in steps[:_MAX_STEPS])
    more = len(steps) - _MAX_STEPS
    left = quiet(AND_MORE.format(count=more)) if more > 0 else ""
    shown = scrolled(f"<thead>{heads}</thead><tbody>{rows}</tbody>", "rules steps")
    return section(words.STEPS_AND_PHASES, shown + left, "steps")


def _step(step: int, phases: Sequence[str], cells: dict[tuple[int, str], Counter[Verdict]]) -> str:
    shown = ""
    for phase in phases:
        content = ""
        if counts := cells.get((step, phase)):
            worst = words.VERDICT[min(counts, key=words.RANK_OF.__getitem__)]
            content = f'{badge(worst)} <span class="quiet">{sum(counts.values()):,}</span>'
        shown += f"<td>{content}</td>"
    return f'<tr><th scope="row">{step}</th>{shown}</tr>'


def to_body(comparisons: Sequence[RankComparison], options: Options) -> PageBody:
    """The page of all ranks."""
    paths = (comparisons[0].mine_path, comparisons[0].golden_path)
    names = [one_line(short_path(path)) for path in paths if path]
    return PageBody(
        "compare",
        " → ".join(names),
        heading=ARROW.join(map(escaped, names)),
        overview="".join(_card(each, comparisons) for each in comparisons),
        sections=(
            curves_section(comparisons),
            tree_section(comparisons),
            steps_section(comparisons),
            calls_section(comparisons),
            "".join(map(_records, comparisons)),
        ),
        package=str(__package__),
        styles=(CHARTS_STYLE, "compare.css"),
        scripts=(ELEMENTS, CONTROLS, CHARTS, "compare.js"),
    )


def _card(comparison: RankComparison, comparisons: Sequence[RankComparison]) -> str:
    """One rank: the verdict in large, what is known of the culprit, what to do."""
    culprit = comparison.culprit
    worst = Verdict.EQUAL if culprit is None else comparison.pairs[culprit].judgement.verdict
    label = sentences.label(comparison, comparisons)
    rank = both(label, 'span class="quiet"') if label else ""
    elements = {words.PICTURE: 'code class="picture"'}
    known = "".join(
        f"<div><dt>{both(name)}</dt><dd>{both(text, elements.get(name, 'span'))}</dd></div>"
        for name, text in sentences.details(comparison)
    )
    commands = "".join(
        f"<p>{both(what)}</p><pre>{escaped(chr(10).join(lines))}</pre>"
        for what, lines in sentences.next_commands(comparison)
    )
    more = "".join(map(quiet, [*sentences.network(comparison), *filter(None, [sentences.grown(comparison)])]))
    found = sentences.verdict_counts(comparison)
    counts = "".join(
        f"<li>{badge(grade)} {found[verdict]:,}</li>"
        for verdict, grade in in_table_order(found, words.VERDICT)
    )
    return (
        f'<div class="card {words.VERDICT[worst].kind}">{rank}{both(sentences.headline(comparison), "h2")}'
        f'<dl>{known}</dl>{commands}{more}<ul class="verdicts">{counts}</ul></div>'
    )


def _records(comparison: RankComparison) -> str:
    sides = [(words.MINE, comparison.mine, comparison.mine_path)]
    if comparison.golden is not None:
        sides.append((words.GOLDEN, comparison.golden, comparison.golden_path))
    rows = [
        [both(side), both(name), escaped(value)]
        for side, header, path in sides
        for name, value in _facts(header, path)
    ]
    rows += [[both(words.NOTE), "", both(note)] for note in comparison.notes]
    return section(words.RECORDS, facts(rows), kind="records")


def _facts(header: RecordHeader, path: str) -> list[tuple[Text, str]]:
    device = f"{header.device} ({header.vendor})" if header.vendor else header.device
    rank = f"{header.rank} / {header.world}"
    found = [
        (words.FILE, path), (words.PROGRAM, header.program), (words.DEVICE, device), (words.TORCH, header.torch),
        (words.RANK_COLUMN, rank if header.world > 1 else ""),
    ]  # fmt: skip
    return [(name, one_line(value)) for name, value in found if value]

"""The page's tree of modules, each in the colour of the worst call below it; and the matrix of steps and phases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchferry.accuracy.compare.model import Comparison, Verdict
from torchferry.accuracy.report import sentences, words
from torchferry.accuracy.report.html_parts import SIGNS, TONES, badge, quiet
from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line
from torchferry.text import Text

_OPEN_DEPTH = 2  # modules without a problem are open down to here; those with one are open
_MAX_STEPS = 200
_PHASES = ("forward", "backward", "optimizer")
_RANK = {verdict: at for at, verdict in enumerate(sentences.WORST_FIRST)}


@dataclass
class Node:
    """A module: the calls in it and below, by their verdicts."""

    name: str
    path: str  # as the table's filter takes it
    counts: Counter[Verdict] = field(default_factory=Counter)
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def worst(self) -> Verdict:
        return min(self.counts, key=_RANK.__getitem__)


def module_tree(comparisons: Sequence[Comparison]) -> Node:
    """All calls, by rank if there are several, model, and path."""
    root = Node("", "")
    several = len(comparisons) > 1
    for comparison in comparisons:
        for pair in comparison.pairs:
            if pair.mine is None:
                continue
            names = [f"rank {comparison.mine.rank}"] if several else []
            names += [pair.mine.model] if pair.mine.model else []
            path = sentences.path_in_model(pair.mine)
            names += path.split(".") if path else []
            _add(root, names, pair.judgement.verdict)
    return root


def _add(root: Node, names: Sequence[str], verdict: Verdict) -> None:
    node = root
    node.counts[verdict] += 1
    for name in names:
        path = f"{node.path}/{name}" if node.path else name
        node = node.children.setdefault(name, Node(name, path))
        node.counts[verdict] += 1


def tree_section(comparisons: Sequence[Comparison]) -> str:
    """The section."""
    root = module_tree(comparisons)
    if not root.counts:
        return ""
    buttons = (
        f'<button type="button" class="plain" data-open="true">{both(words.EXPAND)}</button> '
        f'<button type="button" class="plain" data-open="false">{both(words.COLLAPSE)}</button>'
    )
    return (
        f'<section id="modules"><h2>{both(words.MODULES)}</h2>{quiet(words.TREE_HELP)}'
        f'<p class="tools" hidden>{buttons}</p><div class="scroll"><div class="tree">{_node(root, 0)}</div></div></section>'
    )


def _node(node: Node, depth: int) -> str:
    is_bad = node.worst in sentences.BAD
    name = f"<b>{escaped(one_line(node.name))}</b>" if node.path else f"<b>{both(words.WHOLE_PROGRAM)}</b>"
    link = f'<button type="button" class="plain module" data-module="{escaped(one_line(node.path))}">{name}</button>'
    line = (
        f'<span class="what">{link}</span>{badge(node.worst)}'
        f'<span class="counts">{"".join(map(_count, _ordered(node.counts)))}</span>'
    )
    tone = f"line {TONES[node.worst]}{' bad' if is_bad else ''}"
    if not node.children:
        return f'<div class="{tone} leaf">{line}</div>'
    is_open = is_bad or depth < _OPEN_DEPTH
    below = "".join(_node(child, depth + 1) for child in node.children.values())
    return (
        f'<details{" open" if is_open else ""}><summary class="{tone}">{line}</summary>'
        f'<div class="below">{below}</div></details>'
    )


def _ordered(counts: Counter[Verdict]) -> list[tuple[Verdict, int]]:
    return sorted(counts.items(), key=lambda item: _RANK[item[0]])


def _count(item: tuple[Verdict, int]) -> str:
    verdict, count = item
    said = f'<span class="hush">{both(words.VERDICT[verdict])}</span>'
    return f'<span class="tally {TONES[verdict]}"><i aria-hidden="true">{SIGNS[verdict]}</i> {count:,}{said}</span>'


def steps_section(comparisons: Sequence[Comparison]) -> str:
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
    names = [
        words.STEP,
        *(words.PHASE.get(phase, Text(one_line(phase), one_line(phase))) for phase in phases),
    ]
    head = "".join(f"<th scope='col'>{both(name)}</th>" for name in names)
    rows = "".join(_step(step, phases, cells) for step in steps[:_MAX_STEPS])
    more = len(steps) - _MAX_STEPS
    left = quiet(words.AND_MORE.format(count=more)) if more > 0 else ""
    return (
        f'<section id="steps"><h2>{both(words.STEPS_AND_PHASES)}</h2><div class="scroll"><table class="rules steps">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{left}</section>"
    )


def _step(step: int, phases: Sequence[str], cells: dict[tuple[int, str], Counter[Verdict]]) -> str:
    shown = []
    for phase in phases:
        counts = cells.get((step, phase))
        if not counts:
            shown.append("<td></td>")
            continue
        worst = min(counts, key=_RANK.__getitem__)
        shown.append(f'<td>{badge(worst)} <span class="quiet">{sum(counts.values()):,}</span></td>')
    return f'<tr><th scope="row">{step}</th>{"".join(shown)}</tr>'

"""A comparison as one self-contained page: verdict, curves, modules, steps, calls. The script adds pages and filters."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.accuracy.compare.model import Comparison
from torchferry.accuracy.model import Header
from torchferry.accuracy.report import sentences, words
from torchferry.accuracy.report.html_calls import calls_section
from torchferry.accuracy.report.html_curves import curves_section
from torchferry.accuracy.report.html_parts import TONES, badge
from torchferry.accuracy.report.html_tree import steps_section, tree_section
from torchferry.report.frame import Page, framed
from torchferry.report.html import asset
from torchferry.report.markup import both, escaped, row
from torchferry.report.safe import one_line
from torchferry.text import Language, Text


def to_html(comparisons: Sequence[Comparison], language: Language = "en") -> str:
    """The page; it holds both languages and opens in the one asked for."""
    names = _names(comparisons)
    page = Page(
        " → ".join(names),
        ' <span class="arrow">→</span> '.join(map(escaped, names)),
        "".join(_card(each, comparisons) for each in comparisons),
        [
            curves_section(comparisons),
            tree_section(comparisons),
            steps_section(comparisons),
            calls_section(comparisons),
            "".join(map(_records, comparisons)),
        ],
        asset("compare.css", "torchferry.accuracy.report"),
        asset("elements.js") + asset("compare.js", "torchferry.accuracy.report"),
    )
    return framed(page, language)


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    """The two files."""
    first = comparisons[0]
    return [one_line(path) for path in (first.mine_path, first.golden_path) if path]


def _card(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """One rank: the verdict in large, what is known of the culprit, what to do."""
    culprit = comparison.culprit
    tone = TONES[comparison.pairs[culprit].judgement.verdict] if culprit is not None else "change"
    label = sentences.label(comparison, comparisons)
    rank = both(label, 'span class="quiet"') if label else ""
    facts = "".join(
        f"<div><dt>{both(name)}</dt><dd>{both(text, _element(name))}</dd></div>"
        for name, text in sentences.details(comparison)
    )
    commands = "".join(
        f"<p>{both(what)}</p><pre>{escaped(chr(10).join(lines))}</pre>"
        for what, lines in sentences.next_commands(comparison)
    )
    said = [*sentences.network(comparison), *filter(None, [sentences.grown(comparison)])]
    more = "".join(both(text, 'p class="quiet"') for text in said)
    verdicts = sentences.verdict_counts(comparison)
    counts = "".join(
        f"<li>{badge(verdict)} {verdicts[verdict]:,}</li>"
        for verdict in sentences.WORST_FIRST
        if verdicts[verdict]
    )
    return (
        f'<div class="card {tone}">{rank}{both(sentences.headline(comparison), "h2")}<dl>{facts}</dl>{commands}{more}'
        f'<ul class="verdicts">{counts}</ul></div>'
    )


def _element(name: Text) -> str:
    return 'code class="picture"' if name is words.PICTURE else "span"


def _records(comparison: Comparison) -> str:
    """Where the two records come from."""
    sides = [(words.MINE, comparison.mine, comparison.mine_path)]
    if comparison.golden is not None:
        sides.append((words.GOLDEN, comparison.golden, comparison.golden_path))
    rows = [
        row([both(side), both(name), escaped(value)])
        for side, header, path in sides
        for name, value in _facts(header, path)
    ]
    rows += [row([both(words.NOTE), "", both(note)]) for note in comparison.notes]
    return (
        f'<section class="records"><h2>{both(words.RECORDS)}</h2>'
        f'<div class="scroll"><table class="rules facts"><tbody>{"".join(rows)}</tbody></table></div></section>'
    )


def _facts(header: Header, path: str) -> list[tuple[Text, str]]:
    device = f"{header.device} ({header.vendor})" if header.vendor else header.device
    rank = f"{header.rank} / {header.world}"
    found = [
        (words.FILE, path), (words.PROGRAM, header.program), (words.DEVICE, device), (words.TORCH, header.torch),
        (words.RANK_COLUMN, rank if header.world > 1 else ""),
    ]  # fmt: skip
    return [(name, one_line(value)) for name, value in found if value]

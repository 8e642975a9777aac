"""The page's table of operators: support on each device; opening one shows reasons, advice and calls."""

from __future__ import annotations

from torchferry.ops.model import TensorSpec, Use
from torchferry.ops.readiness import Advice, Support
from torchferry.ops.report import sentences, words
from torchferry.ops.report.html_parts import TONES, Anchors, badge, place_link, quiet
from torchferry.ops.report.tables import BEST_FIRST, OperatorRow, Overview
from torchferry.report.markup import both, escaped, row, table
from torchferry.report.safe import one_line, web_address
from torchferry.text import Text

MAX_USES = 25  # of one operator


def operators_section(overview: Overview, operators: Anchors, lines: Anchors) -> str:
    """The section; the anchors are those of operators, and of lines of code."""
    heads = [(words.OPERATOR, "text"), (words.CALLS, "number"), (_weight_word(overview), "number")]
    heads += [(Text(*[one_line(name)] * 2), "support") for name in overview.labels]
    heads += [(words.DTYPES, "text"), (words.PHASE_COLUMN, "text")]
    head = "".join(f'<th scope="col" data-sort="{kind}">{both(text)}</th>' for text, kind in heads)
    bodies = "".join(
        _operator(each, overview, operators[each.operator], lines, len(heads)) for each in overview.operators
    )
    is_absent = any(None in each.supports for each in overview.operators)
    absent = quiet(words.ABSENT_MEANS) if is_absent else ""
    count = f'<span class="count">{len(overview.operators)}</span>'
    return (
        f'<section id="operators"><h2>{both(words.OPERATORS)}{count}</h2>{_filters(overview)}'
        f'<div class="scroll"><table class="rules operators"><thead><tr>{head}</tr></thead>{bodies}</table></div>{absent}</section>'
    )


def _weight_word(overview: Overview) -> Text:
    return words.TIME if overview.is_timed else words.SHARE


def _filters(overview: Overview) -> str:
    """For the script; hidden without it."""
    found = {support for each in overview.operators for support in each.supports if support}
    chips = "".join(
        f'<button type="button" class="chip {TONES[support]}" data-support="{support.value}" aria-pressed="false">'
        f"{both(words.SUPPORT[support])}</button>"
        for support in reversed(BEST_FIRST)
        if support in found
    )
    devices = "".join(
        f'<button type="button" class="chip info" data-device="{at}" aria-pressed="false">{escaped(one_line(name))}</button>'
        for at, name in enumerate(overview.labels)
    )
    any_device = f'<button type="button" class="chip info" data-device="-1" aria-pressed="true">{both(words.ANY_DEVICE)}</button>'
    counted = words.SHOWN.format(shown="%", count=len(overview.operators))
    return (
        f'<form class="filters" role="search" hidden><label class="quiet" for="query">{both(words.SEARCH)}</label>'
        f'<input type="search" id="query" autocomplete="off" spellcheck="false">'
        f'<span class="hush" id="by-device">{both(words.VENDOR)}</span>'
        f'<div class="chips" role="group" aria-labelledby="by-device">{any_device}{devices}</div>'
        f'<span class="hush" id="by-support">{both(words.SUPPORT_COLUMN)}</span>'
        f'<div class="chips" role="group" aria-labelledby="by-support">{chips}</div>'
        f'<button type="button" class="plain" id="clear">{both(words.CLEAR)}</button>'
        f'<span class="quiet" id="shown" role="status">{both(counted)}</span></form>'
    )


def _operator(each: OperatorRow, overview: Overview, anchor: str, lines: Anchors, columns: int) -> str:
    supports = each.supports
    phases = dict.fromkeys(use.site.phase for use in each.uses)
    cells = [
        f'<th scope="row"><code>{escaped(one_line(each.operator))}</code></th>',
        f'<td class="number" data-value="{each.calls}">{each.calls:,}</td>',
        f'<td class="number" data-value="{each.share:.9f}">{sentences.part(each.share)}</td>',
        *(f'<td data-value="{_rank(support)}">{badge(support)}</td>' for support in supports),
        f"<td>{escaped(sentences.dtypes(each.uses))}</td>",
        f"<td>{', '.join(both(words.PHASE[phase]) for phase in phases)}</td>",
    ]
    known = " ".join(support.value if support else "none" for support in supports)
    details = f"<summary>{both(words.DETAILS)}</summary>{_judgements(each, overview)}{_uses(each, lines)}"
    return (
        f'<tbody id="{anchor}" data-supports="{known}"><tr>{"".join(cells)}</tr>'
        f'<tr class="more-of"><td colspan="{columns}"><details>{details}</details></td></tr></tbody>'
    )


def _rank(support: Support | None) -> int:
    return BEST_FIRST.index(support) if support else -1


def _judgements(each: OperatorRow, overview: Overview) -> str:
    """For each device the reasons, each once, and the advice."""
    items = []
    for name, judgements in zip(overview.labels, each.judgements, strict=True):
        reasons = dict.fromkeys((judgement.support, judgement.reason) for judgement in judgements)
        advice = dict.fromkeys(one for judgement in judgements for one in judgement.advice)
        moved = sentences.moved(sum(judgement.moved_bytes for judgement in judgements), overview.capture)
        said = "".join(f"<p>{badge(support)} {both(reason)}</p>" for support, reason in reasons)
        if moved:
            said += quiet(moved)
        said += "".join(map(_advice, advice))
        items.append(f"<dt>{escaped(one_line(name))}</dt><dd>{said}</dd>")
    return f'<dl class="judgements">{"".join(items)}</dl>'


def _advice(advice: Advice) -> str:
    code = f"<pre>{escaped(advice.code)}</pre>" if advice.code else ""
    address = web_address(advice.source)
    shown = escaped(one_line(advice.source))
    source = f'<a class="source" href="{escaped(address)}" rel="noreferrer">{shown}</a>' if address else shown
    return f"<p><strong>{both(words.REMEDY[advice.remedy])}</strong>: {both(advice.text)} {source}</p>{code}"


def _uses(each: OperatorRow, lines: Anchors) -> str:
    heads = [words.INPUTS, words.ARGUMENTS, words.OUTPUTS, words.CALLS, words.TIME]
    heads += [words.PHASE_COLUMN, words.MODULE, words.PLACE]
    rows = [_use(use, lines) for use in each.uses[:MAX_USES]]
    more = len(each.uses) - MAX_USES
    below = quiet(words.LEFT_OUT.format(count=more)) if more > 0 else ""
    return table(heads, rows, "rules uses") + below


def _use(use: Use, lines: Anchors) -> str:
    inputs = "<br>".join(map(_tensor, use.signature.inputs))
    if use.varied:
        inputs += f'<br><span class="quiet">{both(words.VARIED)}</span>'
    node = f"<br><code>{escaped(one_line(use.site.node))}</code>" if use.site.node else ""
    return row(
        [
            inputs,
            f"<code>{escaped(sentences.arguments(use.signature))}</code>",
            "<br>".join(map(_tensor, use.signature.outputs)),
            f"{use.calls:,}",
            sentences.duration(use.seconds) if use.seconds else "",
            both(words.PHASE[use.site.phase]) + node,
            f"<code>{escaped(sentences.module(use))}</code>",
            place_link(use, lines),
        ]
    )


def _tensor(spec: TensorSpec) -> str:
    """The strides are shown where they are not those of a new tensor."""
    plain = spec.stride is None or sentences.is_contiguous(spec)
    stride = "" if plain else f' <span class="quiet">{escaped(sentences.stride(spec))}</span>'
    return f"<code>{escaped(sentences.tensor(spec))}</code>{stride}"

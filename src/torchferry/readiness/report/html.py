"""Readiness as one self-contained page: made here, whole; the script adds sorting, filters and the choice of language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchferry import units
from torchferry.readiness.model import OperatorSupport, Readiness, TensorSpec, Use
from torchferry.readiness.report import words
from torchferry.readiness.report.tables import (
    ModuleNode,
    OperatorSupportRow,
    Overview,
    SourceFile,
    SourceLine,
    Tally,
    label,
    module_tree,
    source_files,
    worst,
)
from torchferry.report.bodies import PageBody
from torchferry.report.formats import Options
from torchferry.report.html import (
    ARROW,
    CONTROLS,
    ELEMENTS,
    badge,
    both,
    chips,
    code,
    escaped,
    facts,
    filters,
    in_table_order,
    quiet,
    row,
    scrolled,
    section,
    sortable_head,
    table,
    tree_tools,
)
from torchferry.report.safe import one_line, web_address
from torchferry.text import Text

_HEAT = ((0.99, "h4"), (0.95, "h3"), (0.8, "h2"), (0.5, "h1"), (0.0, "h0"))

_RANKS: dict[OperatorSupport | None, int] = {
    None: -1,
    **{support: rank for rank, support in enumerate(OperatorSupport)},
}

Anchors = Mapping[str, str]  # a line of code, or an operator -> the id of what shows it


def support_badge(support: OperatorSupport | None) -> str:
    """The support in words, or that the operator does not arrive at the device."""
    return badge(words.SUPPORT[support]) if support else f'<span class="quiet">{words.ABSENT}</span>'


def heat(tally: Tally) -> str:
    """The share that a device computes, coloured; with the sign of the worst that lies below."""
    if tally.support is None:
        return '<span class="cell"></span>'
    share = units.percent_of_all(tally.share, tally.is_all)
    if tally.is_all:
        return f'<span class="cell full">{share}</span>'
    level = next(name for least, name in _HEAT if tally.share >= least)
    tone = "dark" if tally.support is OperatorSupport.UNKNOWN else level
    grade = words.SUPPORT[tally.support]
    if tally.support is OperatorSupport.UNKNOWN and not tally.ready_calls:
        share = ""
    said = f'<span class="hush">{both(grade.name)}</span>'
    return f'<span class="cell {tone}">{share} <i aria-hidden="true">{grade.sign}</i>{said}</span>'


FEWEST_FOLDED = 4  # modules without a problem
_CALM_MODULES = Text("{count} more modules without a problem", "另有 {count} 个没有问题的模块")
OPEN_DEPTH = 2  # modules with a problem are open down to here


def modules_section(overview: Overview, anchors: Anchors) -> str:
    """The heat map: the tree of modules, a column for each device; opening a module shows what it calls.

    `anchors` are those of the operators.
    """
    root = module_tree(overview)
    heads = "".join(f'<span class="cell">{escaped(one_line(name))}</span>' for name in overview.labels)
    helping = words.HEAT_HELP if overview.is_timed else words.HEAT_HELP_CALLS
    head = (
        f'<div class="line head"><span class="what">{both(words.MODULE)}</span>'
        f'<span class="part">{both(words.weight(overview.is_timed))}</span>{heads}</div>'
    )
    tree = f'<div class="scroll"><div class="tree">{head}{_module(root, overview, anchors, 0)}</div></div>'
    return section(words.MODULES, quiet(helping) + tree_tools() + tree, "modules")


def _module(node: ModuleNode, overview: Overview, anchors: Anchors, depth: int) -> str:
    is_open = depth == 0 or (node.has_problem and depth <= OPEN_DEPTH)
    name = f"<b>{escaped(one_line(node.name))}</b>" if node.path else both(words.WHOLE_PROGRAM, "b")
    kind = f' <span class="quiet">{escaped(one_line(node.type))}</span>' if node.type else ""
    children = _children(node, overview, anchors, depth)
    own = sorted(node.operators.values(), key=lambda called: -sum(map(overview.weight, called.uses)))
    operators = ""
    for called in own:
        link = f'<a href="#{anchors[called.operator]}">{code(called.operator)}</a>'
        badges = "".join(
            f'<span class="cell">{support_badge(each.support)}</span>' for each in called.tallies
        )
        weight = sum(map(overview.weight, called.uses))
        operators += (
            f'<div class="line call"><span class="what">{link}</span>{_part(weight, overview)}{badges}</div>'
        )
    troubled = [one_line(name) for name in dict.fromkeys(_troubled(node))] if node.has_problem else []
    more = ", …" if len(troubled) > words.MAX_ITEMS else ""
    title = f' title="{escaped(", ".join(troubled[: words.MAX_ITEMS]) + more)}"' if troubled else ""
    return (
        f'<details{" open" if is_open else ""}><summary class="line"{title}><span class="what">{name}{kind}</span>'
        f"{_part(node.weight, overview)}{''.join(map(heat, node.tallies))}</summary>"
        f'<div class="below">{children}{operators}</div></details>'
    )


def _children(node: ModuleNode, overview: Overview, anchors: Anchors, depth: int) -> str:
    """The modules below, many of those without a problem in one line."""
    calm = [child for child in node.children.values() if not child.has_problem]
    if len(calm) < FEWEST_FOLDED:
        calm = []
    shown = "".join(
        _module(child, overview, anchors, depth + 1) for child in node.children.values() if child not in calm
    )
    if not calm:
        return shown
    folded = "".join(_module(child, overview, anchors, depth + 1) for child in calm)
    weight = _part(sum(child.weight for child in calm), overview)
    title = both(_CALM_MODULES.format(count=len(calm)))
    return (
        f'{shown}<details><summary class="line"><span class="what quiet">{title}</span>{weight}</summary>'
        f'<div class="below">{folded}</div></details>'
    )


def _part(weight: float, overview: Overview) -> str:
    return f'<span class="part">{units.percent(overview.part(weight))}</span>'


def _troubled(node: ModuleNode) -> list[str]:
    """The operators that are a problem for any device, of the module and all below."""
    own = [
        called.operator
        for called in node.operators.values()
        if any(tally.support is not None and tally.support.is_problem for tally in called.tallies)
    ]
    below = (name for child in node.children.values() if child.has_problem for name in _troubled(child))
    return [*own, *below]


MAX_USES = 25  # of one operator


def operators_section(overview: Overview, operators: Anchors, lines: Anchors) -> str:
    """The table of operators: support on each device; opening one shows reasons, advice and calls.

    The anchors are those of operators, and of lines of code.
    """
    heads = [(words.OPERATOR, "text")]
    heads += [(Text(*[one_line(name)] * 2), "support") for name in overview.labels]
    heads += [(words.weight(overview.is_timed), "number"), (words.CALLS, "number")]
    heads += [(words.DTYPES, "text"), (words.PHASE_COLUMN, "text")]
    bodies = "".join(
        _operator(each, overview, operators[each.operator], lines, len(heads)) for each in overview.operators
    )
    is_absent = any(None in each.supports for each in overview.operators)
    absent = quiet(words.ABSENT_MEANS) if is_absent else ""
    shown = scrolled(sortable_head(heads) + bodies, "rules operators")
    count = len(overview.operators)
    return section(words.OPERATORS, _filters(overview) + shown + absent, "operators", count=count)


_PROBLEMS = Text("Problems and what to write instead", "问题与替代写法")
_MORE_PROBLEMS = Text("{count} more problems are in the table of operators.", "另有 {count} 个问题见算子表。")
_MOST_PROBLEMS = 30


def problems_section(overview: Overview, operators: Anchors, lines: Anchors) -> str:
    """The operators that a device does not compute by itself, the worst first, each with its advice."""
    found = [
        each
        for each in overview.operators
        if any(support and support.is_problem for support in each.supports)
    ]
    found.sort(key=lambda each: (-_RANKS[worst(filter(None, each.supports))], -each.share))
    cards = "".join(
        _problem(each, overview, operators[each.operator], lines) for each in found[:_MOST_PROBLEMS]
    )
    more = len(found) - _MOST_PROBLEMS
    left = quiet(_MORE_PROBLEMS.format(count=more)) if more > 0 else ""
    return section(_PROBLEMS, cards + left, "problems", count=len(found)) if found else ""


def _problem(each: OperatorSupportRow, overview: Overview, anchor: str, lines: Anchors) -> str:
    severest = worst(filter(None, each.supports))
    tone = words.SUPPORT[severest].kind if severest else ""
    places = dict.fromkeys(use.site.place for use in each.uses if use.site.place)
    shown = ", ".join(
        f'<a href="#{lines[place]}">{code(place)}</a>' if place in lines else code(place)
        for place in list(places)[: words.MAX_ITEMS]
    )
    said = f"{each.calls:,} × · {units.percent(each.share)}"
    return (
        f'<article class="problem {tone}"><header><h3><a href="#{anchor}">{code(each.operator)}</a></h3>'
        f'<span class="quiet">{said}</span><span class="places">{shown}</span></header>'
        f"{_judgements(each, overview, only_problems=True)}</article>"
    )


def _filters(overview: Overview) -> str:
    found = {support for each in overview.operators for support in each.supports if support}
    supports = [(support.value, grade) for support, grade in in_table_order(found, words.SUPPORT)]
    devices = "".join(
        f'<button type="button" class="chip info" data-device="{at}" aria-pressed="false">{escaped(one_line(name))}</button>'
        for at, name in enumerate(overview.labels)
    )
    any_device = f'<button type="button" class="chip info" data-device="-1" aria-pressed="true">{both(words.ANY_DEVICE)}</button>'
    groups = "".join(
        f'<span class="hush" id="by-{name}">{both(title)}</span>'
        f'<div class="chips" role="group" aria-labelledby="by-{name}">{buttons}</div>'
        for name, title, buttons in (
            ("device", words.VENDOR, any_device + devices),
            ("support", words.SUPPORT_COLUMN, chips(reversed(supports), "support")),
        )
    )
    return filters(words.SEARCH, groups, words.SHOWN.format(shown="%", count=len(overview.operators)))


def _operator(each: OperatorSupportRow, overview: Overview, anchor: str, lines: Anchors, columns: int) -> str:
    supports = each.supports
    phases = dict.fromkeys(use.site.phase for use in each.uses)
    cells = [
        f'<th scope="row">{code(each.operator)}</th>',
        *(f'<td data-value="{_RANKS[support]}">{support_badge(support)}</td>' for support in supports),
        f'<td class="number" data-value="{each.share:.9f}">{units.percent(each.share)}</td>',
        f'<td class="number" data-value="{each.calls}">{each.calls:,}</td>',
        f"<td>{escaped(words.dtypes(each.uses))}</td>",
        f"<td>{', '.join(both(words.PHASE[phase]) for phase in phases)}</td>",
    ]
    known = " ".join(support.value if support else "none" for support in supports)
    heads = [words.INPUTS, words.ARGUMENTS, words.OUTPUTS, words.CALLS, words.TIME]
    heads += [words.PHASE_COLUMN, words.MODULE, words.PLACE]
    uses = table(heads, [_use(use, lines) for use in each.uses[:MAX_USES]], "rules uses")
    more = len(each.uses) - MAX_USES
    uses += quiet(words.LEFT_OUT.format(count=more)) if more > 0 else ""
    details = f"<summary>{both(words.DETAILS)}</summary>{_judgements(each, overview)}{uses}"
    return (
        f'<tbody id="{anchor}" data-supports="{known}"><tr>{"".join(cells)}</tr>'
        f'<tr class="more-of"><td colspan="{columns}"><details>{details}</details></td></tr></tbody>'
    )


def _judgements(each: OperatorSupportRow, overview: Overview, only_problems: bool = False) -> str:
    """For each device the reasons, each once, and the advice."""
    items = []
    for name, judgements in zip(overview.labels, each.judgements, strict=True):
        if only_problems and not any(judgement.support.is_problem for judgement in judgements):
            continue
        reasons = dict.fromkeys((judgement.support, judgement.reason) for judgement in judgements)
        advice = dict.fromkeys(one for judgement in judgements for one in judgement.advice)
        moved = words.moved(sum(judgement.moved_bytes for judgement in judgements), overview.capture)
        said = "".join(f"<p>{support_badge(support)} {both(reason)}</p>" for support, reason in reasons)
        if moved:
            said += quiet(moved)
        for one in advice:
            address, source = web_address(one.source), escaped(one_line(one.source))
            if address:
                source = f'<a class="source" href="{escaped(address)}" rel="noreferrer">{source}</a>'
            said += f"<p><strong>{both(words.REMEDY[one.remedy])}</strong>: {both(one.text)} {source}</p>"
            said += f"<pre>{escaped(one.code)}</pre>" if one.code else ""
        items.append(f"<dt>{escaped(one_line(name))}</dt><dd>{said}</dd>")
    return f'<dl class="judgements">{"".join(items)}</dl>'


def _use(use: Use, lines: Anchors) -> str:
    inputs = "<br>".join(map(_tensor, use.signature.inputs))
    if use.varied:
        inputs += f'<br><span class="quiet">{both(words.VARIED)}</span>'
    node = f"<br>{code(use.site.node)}" if use.site.node else ""
    place, target = code(words.place(use)), lines.get(use.site.place)
    return row(
        [
            inputs,
            code(words.arguments(use.signature)),
            "<br>".join(map(_tensor, use.signature.outputs)),
            f"{use.calls:,}",
            units.duration(use.seconds) if use.seconds else "",
            both(words.PHASE[use.site.phase]) + node,
            code(words.module(use)),
            f'<a href="#{target}">{place}</a>' if target else place,
        ]
    )


def _tensor(spec: TensorSpec) -> str:
    """The strides are shown where they are not those of a new tensor."""
    plain = spec.stride is None or words.is_contiguous(spec)
    stride = "" if plain else f' <span class="quiet">{escaped(words.stride(spec))}</span>'
    return code(words.tensor(spec)) + stride


def to_body(readinesses: Sequence[Readiness], options: Options) -> PageBody:
    """The page, with lines of code from below the folder where the program ran."""
    overview = Overview(readinesses)
    operators = {each.operator: f"operator-{at}" for at, each in enumerate(overview.operators)}
    files = source_files(overview, options.folder)
    lines = {
        f"{file.name}:{line.number}": f"line-{at}-{line.number}"
        for at, file in enumerate(files)
        for line in file.lines
        if line.operators
    }
    sources = "".join(_file(file, lines) for file in files)
    capture = overview.capture
    run = [[both(name), escaped(str(value))] for name, value in words.facts(capture, len(overview.uses))]
    run += [[both(words.NOTE), both(words.note(key))] for key in capture.notes]
    program = one_line(capture.program)
    devices = ", ".join(one_line(each.vendor) for each in overview.readinesses)
    return PageBody(
        "ops",
        f"{program} → {devices}",
        heading=escaped(program) + ARROW + escaped(devices),
        overview="".join(map(_card, overview.readinesses)),
        sections=(
            problems_section(overview, operators, lines) if overview.uses else "",
            modules_section(overview, operators) if overview.uses else "",
            operators_section(overview, operators, lines) if overview.uses else "",
            section(words.SOURCE, quiet(words.LINES_HELP) + sources, "sources") if files else "",
            section(words.SUMMARY, facts(run), "run"),
        ),
        package=str(__package__),
        styles=("ops.css",),
        scripts=(ELEMENTS, CONTROLS, "ops.js"),
    )


def _card(readiness: Readiness) -> str:
    support = worst(judgement.support for judgement in readiness.judgements)
    is_known = any(judgement.support is not OperatorSupport.UNKNOWN for judgement in readiness.judgements)
    share = words.ready_percent(readiness) if is_known else "?" if readiness.judgements else "–"
    tone = words.SUPPORT[support].kind if support else "info"
    return (
        f'<div class="device {tone}"><h2>{escaped(one_line(label(readiness)))}</h2><div class="big">{escaped(share)}</div>'
        f"{both(words.said(readiness), 'p')}</div>"
    )


def _file(file: SourceFile, anchors: Anchors) -> str:
    rows = []
    last = file.lines[0].number - 1
    for line in file.lines:
        if line.number > last + 1:
            rows.append('<tr class="gap"><td colspan="4">⋯</td></tr>')
        rows.append(_line(line, anchors.get(f"{file.name}:{line.number}", "")))
        last = line.number
    note = "" if file.is_readable else quiet(words.UNREADABLE)
    return (
        f'<details class="group file" open><summary><h3>{code(file.name)}</h3>'
        f'<span class="quiet">{units.percent(file.share)}</span></summary>{note}'
        f"{scrolled('<tbody>' + ''.join(rows) + '</tbody>', 'code')}</details>"
    )


def _line(line: SourceLine, anchor: str) -> str:
    if not anchor:
        return f"<tr><td>{line.number}</td><td></td><td></td><td><code>{escaped(line.text)}</code></td></tr>"
    support = worst(filter(None, line.supports))
    signs = "".join(
        f'<i class="{words.SUPPORT[each].kind}">{words.SUPPORT[each].sign}</i>' if each else "<i> </i>"
        for each in line.supports
    )
    operators = ", ".join(map(one_line, line.operators[: words.MAX_ITEMS]))
    tone = words.SUPPORT[support].kind if support else ""
    return (
        f'<tr class="calls {tone}" id="{anchor}" title="{escaped(operators)}"><td>{line.number}</td>'
        f'<td class="number">{units.percent(line.share)}</td><td class="signs">{signs}'
        f'<span class="hush">{support_badge(support)}</span></td><td><code>{escaped(line.text)}</code></td></tr>'
    )

"""The page's heat map: the tree of modules, a column for each device; opening a module shows what it calls."""

from __future__ import annotations

from torchferry.ops.report import sentences, words
from torchferry.ops.report.html_parts import Anchors, badge, heat, operator_link, quiet
from torchferry.ops.report.modules import Called, ModuleNode, module_tree
from torchferry.ops.report.tables import Overview
from torchferry.report.markup import both, escaped
from torchferry.report.safe import one_line

OPEN_DEPTH = 2  # modules with a problem are open down to here


def modules_section(overview: Overview, anchors: Anchors) -> str:
    """The section; `anchors` are those of the operators."""
    root = module_tree(overview)
    heads = "".join(f'<span class="cell">{escaped(one_line(name))}</span>' for name in overview.labels)
    weight = words.TIME if overview.is_timed else words.SHARE
    helping = words.HEAT_HELP if overview.is_timed else words.HEAT_HELP_CALLS
    buttons = (
        f'<button type="button" class="plain" data-open="true">{both(words.EXPAND)}</button> '
        f'<button type="button" class="plain" data-open="false">{both(words.COLLAPSE)}</button>'
    )
    return (
        f'<section id="modules"><h2>{both(words.MODULES)}</h2>{quiet(helping)}'
        f'<p class="tools" hidden>{buttons}</p><div class="scroll"><div class="tree">'
        f'<div class="line head"><span class="what">{both(words.MODULE)}</span>'
        f'<span class="part">{both(weight)}</span>{heads}</div>{_module(root, overview, anchors, 0)}</div></div></section>'
    )


def _module(node: ModuleNode, overview: Overview, anchors: Anchors, depth: int) -> str:
    is_open = depth == 0 or (node.has_problem and depth <= OPEN_DEPTH)
    name = f"<b>{escaped(one_line(node.name))}</b>" if node.path else f"<b>{both(words.WHOLE_PROGRAM)}</b>"
    kind = f' <span class="quiet">{escaped(one_line(node.type))}</span>' if node.type else ""
    children = "".join(_module(child, overview, anchors, depth + 1) for child in node.children.values())
    own = sorted(node.operators.values(), key=lambda called: -sum(map(overview.weight, called.uses)))
    operators = "".join(_operator(called, overview, anchors) for called in own)
    title = f' title="{escaped(_trouble(node))}"' if node.has_problem else ""
    return (
        f'<details{" open" if is_open else ""}><summary class="line"{title}><span class="what">{name}{kind}</span>'
        f"{_part(node.weight, overview)}{''.join(map(heat, node.tallies))}</summary>"
        f'<div class="below">{children}{operators}</div></details>'
    )


def _operator(called: Called, overview: Overview, anchors: Anchors) -> str:
    cells = "".join(f'<span class="cell">{badge(tally.support)}</span>' for tally in called.tallies)
    weight = sum(map(overview.weight, called.uses))
    return (
        f'<div class="line call"><span class="what">{operator_link(called.operator, anchors)}</span>'
        f"{_part(weight, overview)}{cells}</div>"
    )


def _part(weight: float, overview: Overview) -> str:
    return f'<span class="part">{sentences.part(overview.part(weight))}</span>'


def _trouble(node: ModuleNode) -> str:
    """What hovering shows: the operators that are a problem for any device, of the module and all below."""
    found = dict.fromkeys(_troubled(node))
    names = [one_line(name) for name in found]
    return ", ".join(names[: sentences.MAX_ITEMS]) + (", …" if len(names) > sentences.MAX_ITEMS else "")


def _troubled(node: ModuleNode) -> list[str]:
    own = [
        called.operator
        for called in node.operators.values()
        if any(tally.support is not None and tally.support.is_problem for tally in called.tallies)
    ]
    below = (name for child in node.children.values() if child.has_problem for name in _troubled(child))
    return [*own, *below]

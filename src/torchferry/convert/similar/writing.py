"""The edits that put an equivalent expression in the place of a call.

What the user wrote as an argument stays where it is whenever that is possible: other rules may edit inside it.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise

from torchferry.convert.renaming import find_rename
from torchferry.convert.similar.choice import Choice
from torchferry.convert.similar.template import Piece, Slot, filled
from torchferry.convert.site import Site
from torchferry.source.edits import Edit

_COMMENT = re.compile(rb"#[^\r\n]*")
_EXTRA = re.compile(r"(\w+)=((?:[^,()]|\([^()]*\))+)")
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple, ast.Dict, ast.Set)
_LOOSE_PLACES = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)


def write(site: Site[ast.Call], choice: Choice, use: str) -> list[Edit]:
    """Edits of a call for which an entry was chosen; `use` is its template with names as this place spells them."""
    if choice.entry.keeps_arguments:
        return _with_own_arguments(site, choice, use)
    defaults = {parameter.name: parameter.default for parameter in choice.parameters}
    pieces = filled(use, choice.arguments.keys(), defaults)
    return _in_place(site, choice, pieces) or _as_function(site, choice, pieces)


def _with_own_arguments(site: Site[ast.Call], choice: Choice, use: str) -> list[Edit]:
    """NAME(..., key=value): another function, arguments that it doesn't take removed, the named ones added."""
    call, module, entry = site.node, site.module, choice.entry
    name, _, rest = use.partition("(")
    edits = [Edit(module.start(call.func), module.end(call.func), name)]
    kept: list[ast.AST] = []
    for position, (argument, node) in enumerate(choice.arguments.items()):
        holder = next((keyword for keyword in call.keywords if keyword.value is node), None)
        if argument not in entry.takes:
            continue
        kept.append(holder or node)
        if holder is None and entry.takes.index(argument) != position:
            edits.append(Edit(module.start(node), module.start(node), f"{argument}="))
    edits += _removals(site, kept)
    added = [f"{key}={value}" for key, value in _EXTRA.findall(rest) if key not in choice.arguments]
    if added:
        closing = module.end(kept[-1])
        edits.append(Edit(closing, closing, ", " + ", ".join(added)))
    return edits


def _removals(site: Site[ast.Call], kept: list[ast.AST]) -> list[Edit]:
    """Take out the arguments that are not kept, each with the comma before it; the first argument is always kept."""
    module = site.module
    everything = [*site.node.args, *site.node.keywords]
    edits = []
    for before, node in pairwise(everything):
        if node not in kept:
            edits.append(Edit(module.end(before), module.end(node), ""))
    return edits


def _in_place(site: Site[ast.Call], choice: Choice, pieces: list[Piece]) -> list[Edit]:
    """The expression written around the arguments; nothing if that would change what is evaluated, or lose a comment."""
    module, call = site.module, site.node
    fixed = [node for node in choice.arguments.values() if not _is_repeatable(site, node)]
    slots = [piece for piece in pieces if isinstance(piece, Slot)]
    order = [choice.arguments[slot.name] for slot in slots if choice.arguments[slot.name] in fixed]
    dropped = [node for node in fixed if node not in order]
    fixed = [node for node in fixed if node not in dropped]
    if order != sorted(fixed, key=module.start) or any(map(_may_act, dropped)):
        return []
    texts = [""]
    for piece in pieces:
        if isinstance(piece, str):
            texts[-1] += piece
            continue
        node = choice.arguments[piece.name]
        is_loose = piece.is_operand and _needs_parentheses(site, piece, node)
        opening, closing = ("(", ")") if is_loose else ("", "")
        if node in fixed:
            texts[-1] += opening
            texts.append(closing)
        else:
            texts[-1] += opening + module.segment(node) + closing
    if _must_be_wrapped(site, texts):
        texts[0] = "(" + texts[0]
        texts[-1] += ")"
    starts = [module.start(call), *(module.end(node) for node in order)]
    ends = [*(module.start(node) for node in order), module.end(call)]
    if any(_COMMENT.search(module.data[start:end]) for start, end in zip(starts, ends, strict=True)):
        return []
    return [Edit(start, end, text) for start, end, text in zip(starts, ends, texts, strict=True)]


def _as_function(site: Site[ast.Call], choice: Choice, pieces: list[Piece]) -> list[Edit]:
    """The expression as a function that the call's own arguments are handed to, once each and in their order."""
    body = "".join(piece if isinstance(piece, str) else piece.name for piece in pieces)
    names = [parameter.name for parameter in choice.parameters if parameter.name in choice.arguments]
    start, end = site.module.start(site.node.func), site.module.end(site.node.func)
    return [Edit(start, end, f"(lambda {', '.join(names)}: {body})")]


def _is_repeatable(site: Site[ast.Call], node: ast.expr) -> bool:
    """Whether an expression may be written several times, anywhere: nothing happens in it, no rule edits it."""
    if "\n" in site.module.segment(node) or "\r" in site.module.segment(node):
        return False
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant) and not isinstance(node.operand.value, str)
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (str, bytes))
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    if not isinstance(inner, ast.Name):
        return False
    qualified = site.qualified(node)
    return not qualified or find_rename(site.context, qualified) is None


def _may_act(node: ast.expr) -> bool:
    """Whether leaving out an expression could leave out something that it does; making an object is nothing."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    acting = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Await, ast.Yield, ast.NamedExpr))]
    return bool(acting) or any(call.args or call.keywords for call in calls)


def _needs_parentheses(site: Site[ast.Call], slot: Slot, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and not isinstance(node.value, (str, bytes)):
        return slot.is_object
    return not isinstance(node, _TIGHT) or "\n" in site.module.segment(node)


def _must_be_wrapped(site: Site[ast.Call], texts: list[str]) -> bool:
    """Whether the expression binds more loosely than the call did, in a place where that matters."""
    shape = ast.parse("x_".join(texts).strip(), mode="eval").body
    if isinstance(shape, (*_TIGHT, ast.Constant)):
        return False
    return "\n" in site.module.segment(site.node) or not isinstance(site.parent, _LOOSE_PLACES)

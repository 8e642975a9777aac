"""The edits that put an equivalent expression in the place of a call.

What the user wrote as an argument stays where it is whenever that is possible: other rules may edit inside it.
"""

from __future__ import annotations

import ast
import re

from torchferry.convert.renaming import find_rename
from torchferry.convert.similar.choice import Choice
from torchferry.convert.similar.signature import Piece, Slot, UnboundError, filled
from torchferry.convert.site import Site
from torchferry.source.edits import Edit
from torchferry.text import Text

_CONSTANT = Text("its argument `{name}` is a constant", "参数 `{name}` 是常量")
_PARENTHESES = Text("an argument stands in parentheses of its own", "有参数带有自己的括号")
_COMMENTED = Text("a comment stands between an argument and its comma", "参数与其逗号之间有注释")
_SCRIPTED = Text("the function around it is compiled by torch.jit", "所在函数由 torch.jit 编译")

_BEHIND = re.compile(rb"[ \t]*,[ \t]*")
_COMMENT = re.compile(rb"#[^\r\n]*")
_EXTRA = re.compile(r"(\w+)=((?:[^,()]|\([^()]*\))+)")
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple, ast.Dict, ast.Set)
_LOOSE_PLACES = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)


def write(site: Site[ast.Call], choice: Choice, use: str) -> list[Edit]:
    """Edits of a call for which an entry was chosen; `use` is its template with names as this place spells them.

    Raises UnboundError where nothing certain can be written.
    """
    if choice.entry.keeps_arguments:
        return _with_own_arguments(site, choice, use)
    defaults = {parameter.name: parameter.default for parameter in choice.parameters}
    pieces = filled(use, choice.arguments.keys(), defaults)
    for piece in pieces:
        if (
            isinstance(piece, Slot)
            and piece.is_object
            and isinstance(choice.arguments[piece.name], ast.Constant)
        ):
            raise UnboundError(_CONSTANT.format(name=piece.name))
    edits = _in_place(site, choice, pieces) or _as_function(site, choice, pieces)
    if _is_scripted(site) and any(word in edit.text for edit in edits for word in ("lambda ", " for ")):
        raise UnboundError(_SCRIPTED)
    return edits


def _is_scripted(site: Site[ast.Call]) -> bool:
    """Whether the function around is compiled by torch.jit, which knows no functions inside functions."""
    decorators = getattr(site.scope.node, "decorator_list", ())
    return any(site.qualified(node).startswith("torch.jit.") for node in decorators)


def _with_own_arguments(site: Site[ast.Call], choice: Choice, use: str) -> list[Edit]:
    """NAME(..., key=value): another function, arguments that it doesn't take removed, the named ones added."""
    call, module, entry = site.node, site.module, choice.entry
    name, _, rest = use.partition("(")
    edits = [Edit(module.start(call.func), module.end(call.func), name)]
    kept: list[ast.AST] = []
    in_order = True
    for argument, node in choice.arguments.items():
        holder = next((keyword for keyword in call.keywords if keyword.value is node), None)
        if argument not in entry.takes:
            continue
        in_order = in_order and entry.takes.index(argument) == len(kept)
        kept.append(holder or node)
        if holder is None and not in_order:
            edits.append(Edit(module.start(node), module.start(node), f"{argument}="))
    edits += _removals(site, kept)
    added = [f"{key}={value}" for key, value in _EXTRA.findall(rest) if key not in choice.arguments]
    if added:
        closing = module.end(kept[-1])
        edits.append(Edit(closing, closing, ", " + ", ".join(added)))
    if len(edits) > 1 and not _is_plainly_written(site):
        raise UnboundError(_PARENTHESES)
    return edits


def _removals(site: Site[ast.Call], kept: list[ast.AST]) -> list[Edit]:
    """Take out the arguments that are not kept, each with the comma before or behind it; comments stay."""
    module, call = site.module, site.node
    everything = [*call.args, *call.keywords]
    edits: list[Edit] = []
    cuts_behind = True  # as at the beginning, where no comma stands before
    for number, node in enumerate(everything):
        if node in kept:
            cuts_behind = False
            continue
        start, end = module.start(node), module.end(node)
        before = module.end(everything[number - 1]) if number else start
        cuts_behind = cuts_behind or b"#" in module.data[before:start]
        if not cuts_behind:
            edits.append(Edit(before, end, ""))
            continue
        comma = _BEHIND.match(module.data, end)
        following = module.start(everything[number + 1]) if number + 1 < len(everything) else module.end(call)
        if comma is None and b"," in _COMMENT.sub(b"", module.data[end:following]):
            raise UnboundError(_COMMENTED)
        edits.append(Edit(start, comma.end() if comma else end, ""))
    return edits


def _is_plainly_written(site: Site[ast.Call]) -> bool:
    """Whether nothing but commas, comments and white space stands between the arguments: no parentheses of their own."""
    module, call = site.module, site.node
    nodes = [*call.args, *call.keywords]
    ends = [module.end(call.func), *(module.end(node) for node in nodes)]
    starts = [*(module.start(node) for node in nodes), module.end(call)]
    gaps = [_COMMENT.sub(b"", module.data[end:start]) for end, start in zip(ends, starts, strict=True)]
    between = b"".join(gaps).translate(None, b" \t\r\n\f\\,")
    return between == b"()"


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
        is_loose = _needs_parentheses(site, piece, node)
        opening, closing = ("(", ")") if is_loose else ("", "")
        if node in fixed:
            texts[-1] += opening
            texts.append(closing)
        else:
            texts[-1] += opening + module.segment(node) + closing
    # A statement has to begin with something that is written here, so that it is known to be meant.
    begins_statement = not texts[0] and module.start(site.place.statement) == module.start(call)
    if begins_statement or _must_be_wrapped(site, texts):
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
    if isinstance(node, ast.Subscript):  # of a list, by a place in it
        index = node.slice
        parts = [index.left, index.right] if isinstance(index, ast.BinOp) else [index]
        return all(_is_repeatable(site, part) for part in (node.value, *parts))
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
    if not slot.is_operand:
        return isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom))
    if isinstance(node, ast.Constant) and not isinstance(node.value, (str, bytes)):
        return slot.is_object
    return not isinstance(node, _TIGHT) or "\n" in site.module.segment(node)


def _must_be_wrapped(site: Site[ast.Call], texts: list[str]) -> bool:
    """Whether the expression binds more loosely than the call did, in a place where that matters."""
    shape = ast.parse("x_".join(texts).strip(), mode="eval").body
    if isinstance(shape, (*_TIGHT, ast.Constant)):
        return False
    return "\n" in site.module.segment(site.node) or not isinstance(site.parent, _LOOSE_PLACES)

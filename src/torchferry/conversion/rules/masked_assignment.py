"""TF731 (opt-in): x[torch.isnan(x)] = 0 as masked_fill_, which needs no list of places on the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.source.edits import Edit
from torchferry.source.names import dotted_name
from torchferry.text import Text

_FILLED = Text(
    "Masked assignment written as `masked_fill_`, which needs no list of places",
    "掩码赋值改为 `masked_fill_`，无需先生成位置列表",
)
# Their argument can only be a tensor, and what they answer is a mask of its shape.
_TESTS = frozenset(f"torch.{name}" for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf"))


def _check(site: Site[ast.Assign]) -> Iterator[Proposal]:
    statement = site.node
    target = statement.targets[0]
    if len(statement.targets) > 1 or not isinstance(target, ast.Subscript) or not _is_number(statement.value):
        return
    if not dotted_name(target.value) or not _is_mask_of(site, target.slice, ast.unparse(target.value)):
        return
    module = site.module
    gaps = (
        (module.end(target.value), module.start(target.slice), ".masked_fill_("),
        (module.end(target.slice), module.start(statement.value), ", "),
        (module.end(statement.value), module.end(statement), ")"),
    )
    written = b"".join(module.data[start:end] for start, end, _ in gaps)
    if written.translate(None, b" \t") == b"[]=":  # no comment, no parentheses, one line
        (_, first, opening), *rest = gaps
        # From its first letter on, because it becomes a statement of another sort.
        whole = Edit(module.start(statement), first, module.segment(target.value) + opening)
        yield site.change(_FILLED, whole, *(Edit(*gap) for gap in rest), needs_prelude=False)


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_mask_of(site: Site[ast.Assign], node: ast.expr, tensor: str) -> bool:
    """Whether an expression tests the elements of this tensor, and nothing else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask_of(site, node.operand, tensor)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd)):
        return all(_is_mask_of(site, part, tensor) for part in (node.left, node.right))
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return False
    return site.qualified(node.func) in _TESTS and ast.unparse(node.args[0]) == tensor


RULE = Rule(
    id="TF731",
    name="masked-assignment",
    summary=Text(
        "Writes assignments through a mask of the tensor itself as `masked_fill_`",
        "将对张量自身掩码的赋值改为 `masked_fill_`",
    ),
    triggers=tuple(sorted(_TESTS)),
    option="similar",
    nodes=(ast.Assign,),
    check=_check,
)

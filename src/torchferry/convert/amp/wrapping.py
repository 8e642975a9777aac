"""Parallel wrappers around a model, which apex wants to see only after amp.initialize."""

from __future__ import annotations

import ast

from torchferry.convert.amp.changes import Changes, Rank
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.blocks import has_own_lines, indent_unit, statements_below
from torchferry.convert.insertion import indent_of, on_next_line
from torchferry.convert.program import Program, last_name, method_of, text_of
from torchferry.source.edits import Edit
from torchferry.text import Text

_MOVED = Text(
    "wrapped after amp.initialize, which refuses a wrapped model",
    "移到 amp.initialize 之后：它不接受已包装的模型",
)
_TANGLED = Text(
    "the model is wrapped before its optimizer is made; amp.initialize must come between: move the wrapper below it",
    "模型在创建优化器之前已被包装；amp.initialize 须位于两者之间：请把包装移到其后",
)
_DATA_PARALLEL = Text(
    "amp.initialize refuses a model in DataParallel: convert with `--data-parallel single` as well, or wrap it below",
    "amp.initialize 不接受 DataParallel 中的模型：请同时使用 `--data-parallel single` 转换，或在其后再包装",
)
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel", "DDP"})
_SAFE_TESTS = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.cmpop)


def move_wraps(program: Program, changes: Changes, below: ast.stmt, models: list[str]) -> None:
    """model = DistributedDataParallel(model) goes below the line that prepares the model."""
    block = program.tree.position(below).block
    for statement in program.statements:
        if statement.lineno > below.lineno or program.routine_of(statement) is not program.routine_of(below):
            continue
        if _is_moved_wrap(statement, models):
            raise UnclearError(statement, _DATA_PARALLEL)
        if not _is_wrap(statement, models):
            continue
        if not has_own_lines(program.module, statement, statement):
            raise UnclearError(statement, _TANGLED)
        if statement in block:
            _move(program, changes, statement, below, "")
        else:
            _move(program, changes, statement, below, _condition(program, statement, below))


def _condition(program: Program, statement: ast.stmt, below: ast.stmt) -> str:
    """When a wrapper in branches above is made; raises UnclearError if that can't be asked again further down."""
    block = program.tree.position(below).block
    tests: list[str] = []
    asked: list[ast.AST] = [statement.value] if isinstance(statement, ast.Assign) else []
    node = statement
    while node not in block:
        position = program.tree.position(node)
        if not isinstance(position.parent, ast.If):
            raise UnclearError(statement, _TANGLED)
        test, is_negative = position.parent.test, node in position.parent.orelse
        if not all(map(_can_be_asked_again, ast.walk(test))):
            raise UnclearError(statement, _TANGLED)
        asked.append(test)
        tests.insert(0, _written(program, test, is_negative))
        node = position.parent
    names = {
        text_of(part)
        for item in asked
        for part in ast.walk(item)
        if isinstance(part, (ast.Name, ast.Attribute))
    }
    for other in statements_below(program.routine_of(below)):
        if statement.lineno < other.lineno <= below.lineno and names & _assigned(other):
            raise UnclearError(statement, _TANGLED)
    return " and ".join(tests)


def _can_be_asked_again(part: ast.AST) -> bool:
    """A part of a test that has the same answer further down, as long as its names are not assigned to."""
    if isinstance(part, ast.Call):
        return method_of(part) == "is_available" and not part.args
    return isinstance(part, (*_SAFE_TESTS, ast.expr_context, ast.boolop, ast.unaryop))


def _written(program: Program, test: ast.expr, is_negative: bool) -> str:
    """A test, or its opposite, as a part of a longer one."""
    if is_negative and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, is_negative = test.operand, False
    text = program.module.segment(test)
    if is_negative:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
            left, right = program.module.segment(test.left), program.module.segment(test.comparators[0])
            return f"{left} is {right}"
        return f"not {text}" if isinstance(test, (ast.Name, ast.Attribute)) else f"not ({text})"
    return f"({text})" if isinstance(test, ast.BoolOp) else text


def _assigned(statement: ast.stmt) -> set[str]:
    """What a simple statement assigns to, without the models that wrappers replace."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if _is_wrapping(statement):
        return set()
    return {text_of(target) for target in targets if target is not None}


def _is_wrapping(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and (last_name(statement.value.func) in _WRAPPERS or method_of(statement.value) in ("cuda", "to"))
    )


def _is_moved_wrap(statement: ast.stmt, models: list[str]) -> bool:
    """model = torch.nn.DataParallel(model).cuda(); in a program that was converted before, the method is the target's."""
    if not isinstance(statement, ast.Assign) or text_of(statement.targets[0]) not in models:
        return False
    call = statement.value
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Call)
        and last_name(call.func.value.func) in _WRAPPERS
    )


def _is_wrap(statement: ast.stmt, models: list[str]) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and last_name(statement.value.func) in _WRAPPERS
        and text_of(statement.targets[0]) in models
    )


def _move(program: Program, changes: Changes, statement: ast.stmt, below: ast.stmt, condition: str) -> None:
    module = program.module
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    start = module.line_starts[first - 1]
    end = module.line_starts[last] if last < len(module.line_starts) else len(module.data)
    change = changes.between(start, end, _MOVED)
    is_alone = len(program.tree.position(statement).block) == 1
    left = f"{indent_of(module, statement)}pass{module.newline}" if is_alone else ""
    change.edits.append((Rank.INLINE, Edit(start, end, left)))
    indent = indent_of(module, below)
    text = indent + module.segment(statement)
    if condition:
        unit = indent_unit(module, statement, program.tree)
        text = f"{indent}if {condition}:{module.newline}{unit}{text}"
    change.edits.append((Rank.BELOW, on_next_line(module, below, text)))

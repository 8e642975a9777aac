"""Gradients that a training step looks at between backward and the optimizer's step: clipping, norms, logging."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.convert.amp.steps import Step, Training
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.blocks import LOOPS, heads_of, statements_below
from torchferry.convert.program import Program, calls_in, last_name, method_of, text_of
from torchferry.text import Text

_APART = Text(
    "gradients are read here but not right before the optimizer's step; they are scaled",
    "此处读取梯度，但不紧邻优化器的 step；此时梯度是缩放过的",
)
_INPUT_GRADIENT = Text(
    "the gradient of something else than a parameter is read; it is scaled: divide it by scaler.get_scale()",
    "读取了非参数的梯度；它是缩放过的：应除以 scaler.get_scale()",
)
_NOT_CLIPPED = Text(
    "gradients are read here; apex keeps them at amp.master_params(optimizer)",
    "此处读取梯度；apex 的梯度在 amp.master_params(optimizer) 中",
)
_CLIPS = re.compile(r"(?i)clip\w*grad|grad\w*clip|clip_(norm|value)|grad\w*norm|adaptive_clip")
_PARAMETERS = re.compile(r"(?i)^(p|param|parameter|params|w|weight|bias|v|value)$")


@dataclass(frozen=True)
class Read:
    """The first statement before a step that looks at gradients, and all that do."""

    statement: ast.stmt
    step: Step
    reading: tuple[ast.stmt, ...]


def read_before_steps(program: Program, training: Training) -> list[Read]:
    """Where gradients are looked at; raises UnclearError if that is anywhere else than right before a step."""
    reading = [item for item in statements_below(training.routine) if _reads(item, program, training)]
    found: list[Read] = []
    done: set[ast.stmt] = set()
    for step in training.steps:
        for statement in _since_backward(step, program, training):
            inner = [item for item in reading if item in (statement, *statements_below(statement))]
            if not inner or done.issuperset(inner):
                continue
            if step.many is not None:
                raise UnclearError(step.call, _APART)
            done.update(inner)
            if found and found[-1].step is step:
                found[-1] = Read(found[-1].statement, step, (*found[-1].reading, *inner))
            else:
                found.append(Read(statement, step, tuple(inner)))
    for statement in reading:
        if statement not in done and _is_between(statement, program, training):
            raise UnclearError(statement, _APART)
    return found


def _since_backward(step: Step, program: Program, training: Training) -> list[ast.stmt]:
    """The statements in the block of a step between it and the backward or step before."""
    block = program.tree.position(step.statement).block
    steps = {item.statement for item in training.steps}
    backwards = training.gradients
    found: list[ast.stmt] = []
    for statement in reversed(block[: block.index(step.statement)]):
        if statement in steps or not backwards.isdisjoint({statement, *statements_below(statement)}):
            break
        found.insert(0, statement)
    return found


def _is_between(statement: ast.stmt, program: Program, training: Training) -> bool:
    """Whether a statement runs after a backward and before the next step."""
    for backward in training.gradients:
        loop = program.tree.holder(backward, *LOOPS)
        if loop is not program.tree.root and loop not in set(program.tree.upwards(statement)):
            continue
        if _follows(statement, backward, training):
            return True
    return False


def _follows(statement: ast.stmt, backward: ast.stmt, training: Training) -> bool:
    first, last = backward.lineno, statement.lineno
    return first <= last and not any(first < step.statement.lineno < last for step in training.steps)


def _reads(statement: ast.stmt, program: Program, training: Training) -> bool:
    if any(_CLIPS.search(method_of(call) or last_name(call.func)) for call in calls_in(statement)):
        return True
    for head in heads_of(statement):
        for node in ast.walk(head):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                if _is_reset(statement) or program.qualified(node, training.routine):
                    continue
                if not _PARAMETERS.match(last_name(node.value)):
                    raise UnclearError(node, _INPUT_GRADIENT)
                return True
    return False


def _is_reset(statement: ast.stmt) -> bool:
    """p.grad.zero_(), p.grad.data.zero_(), or a test whether there is a gradient."""
    if isinstance(statement, (ast.If, ast.Assert)):
        return ".grad is " in text_of(statement.test)
    return ".zero_(" in text_of(statement)


def clips_of(program: Program, training: Training) -> Iterator[tuple[ast.Call, Step]]:
    """The calls that clip the gradients of `model.parameters()`; raises UnclearError if gradients are read otherwise."""
    for read in read_before_steps(program, training):
        for statement in read.reading:
            clips = [item for item in calls_in(statement) if _CLIPS.search(last_name(item.func))]
            if not clips:
                raise UnclearError(statement, _NOT_CLIPPED)
            for call in clips:
                first = call.args[0] if call.args else None
                if not isinstance(first, ast.Call) or method_of(first) != "parameters":
                    raise UnclearError(call, _NOT_CLIPPED)
                yield call, read.step

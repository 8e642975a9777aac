"""GradScaler around backward, clipping and the steps of optimizers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.amp.changes import Changes, Rank
from torchferry.convert.amp.clipping import read_before_steps
from torchferry.convert.amp.steps import Backward, Step, Training
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.blocks import LOOPS, statements_below
from torchferry.convert.program import Program, Routine
from torchferry.source.edits import Edit
from torchferry.text import Text

_SCALED = Text(
    "the loss is scaled, so that small gradients survive in half precision",
    "缩放损失，使半精度下小梯度不丢失",
)
_STEPPED = Text("skips the step when a gradient has overflowed", "梯度溢出时跳过该步")
_UNSCALED = Text("gradients are unscaled before they are looked at", "先还原梯度再读取或裁剪")
_ORDER = Text(
    "it is not clear where the scaler is updated: the steps of one iteration must come before its one update",
    "不清楚在何处更新 scaler：一次迭代的所有 step 须在唯一一次 update 之前",
)


class Scaling:
    """Adds the edits for one training step."""

    def __init__(self, program: Program, changes: Changes, training: Training, scaler: str) -> None:
        self.program = program
        self.module = program.module
        self.tree = program.tree
        self.changes = changes
        self.training = training
        self.scaler = scaler

    def apply(self, renamed: dict[ast.stmt, str]) -> None:
        for backward in self.training.backwards:
            self._scale(backward, renamed.get(backward.statement, ""))
        unscaled = read_before_steps(self.program, self.training)
        groups = step_groups(self.training, self.program)
        self._check_nested(groups)
        updates = [item for node, steps in groups.items() for item in self._updates(node, steps)]
        for step in self.training.steps:
            self._step(step)
        for statement in updates:
            change = self.changes.items[-1]
            change.edits.append(self.changes.below(statement, f"{self.scaler}.update()"))
        for read in unscaled:
            text = f"{self.scaler}.unscale_({self.module.segment(read.step.optimizer)})"
            change = self.changes.at(read.statement, _UNSCALED)
            change.edits.append(self.changes.above(read.statement, text))

    def _scale(self, backward: Backward, name: str) -> None:
        """loss.backward() -> scaler.scale(loss).backward()"""
        call, loss = backward.call, backward.loss
        change = self.changes.at(call, _SCALED)
        start = self.module.start(call)
        dot = self.module.data.rindex(b".", start, self.module.attribute_span(call.func)[0])  # type: ignore[arg-type]
        if name:
            change.edits.append((Rank.INLINE, Edit(start, dot, f"{self.scaler}.scale({name})")))
        elif start < self.module.start(loss):  # in parentheses already
            change.edits.append((Rank.INLINE, Edit(start, start, f"{self.scaler}.scale")))
        else:
            change.edits.append((Rank.INLINE, Edit(start, start, f"{self.scaler}.scale(")))
            end = self.module.end(loss)
            change.edits.append((Rank.INLINE, Edit(end, end, ")")))

    def _step(self, step: Step) -> None:
        """optimizer.step() -> scaler.step(optimizer)"""
        change = self.changes.at(step.call, _STEPPED)
        start, end = self.module.start(step.call), self.module.end(step.call)
        text = f"{self.scaler}.step({self.module.segment(step.optimizer)})"
        change.edits.append((Rank.INLINE, Edit(start, end, text)))

    def _check_nested(self, groups: dict[ast.AST, list[Step]]) -> None:
        """An update in an inner loop must not change the scale between an outer backward and its step."""
        for inner in groups:
            for outer in groups:
                if inner is outer or not isinstance(inner, ast.stmt):
                    continue
                if outer is not self.training.routine and outer not in set(self.tree.upwards(inner)):
                    continue
                for statement in self.training.gradients:
                    around = set(self.tree.upwards(statement))
                    is_outer = inner not in around and (outer in around or outer is self.training.routine)
                    if (
                        is_outer
                        and statement.lineno < inner.lineno
                        and _same_loop(self.tree.holder(statement, *LOOPS), outer, self.training.routine)
                    ):
                        raise UnclearError(statement, _ORDER)

    def _updates(self, top: ast.AST, steps: list[Step]) -> Iterator[ast.stmt]:
        """The statements of one iteration below which the scaler is updated."""
        yield from self._updates_in([self.tree.path(step.statement, top) for step in steps], steps)

    def _updates_in(self, paths: list[list[ast.stmt]], steps: list[Step]) -> Iterator[ast.stmt]:
        children = list(dict.fromkeys(path[0] for path in paths))
        direct = [step for step, path in zip(steps, paths, strict=True) if len(path) == 1]
        if direct:
            names = [step.name for step in direct]
            if len(set(names)) < len(names):
                yield from self._each_alone(steps, paths)
            else:
                yield max(children, key=lambda item: item.lineno)
            return
        if len(children) > 1 and not all(self._holds_backward(child) for child in children):
            raise UnclearError(steps[0].call, _ORDER)
        for child in children:
            inner = [(p[1:], s) for p, s in zip(paths, steps, strict=True) if p[0] is child]
            for block in {id(self.tree.position(p[0]).block): None for p, _ in inner}:
                chosen = [(p, s) for p, s in inner if id(self.tree.position(p[0]).block) == block]
                yield from self._updates_in([p for p, _ in chosen], [s for _, s in chosen])

    def _each_alone(self, steps: list[Step], paths: list[list[ast.stmt]]) -> Iterator[ast.stmt]:
        """One optimizer steps several times in an iteration: right if each step has a backward of its own before."""
        if any(len(path) > 1 for path in paths):
            raise UnclearError(steps[0].call, _ORDER)
        block = self.tree.position(paths[0][0]).block
        pending = False
        for statement in block:
            if self._holds_backward(statement):
                pending = True
            if statement in (path[0] for path in paths):
                if not pending:
                    raise UnclearError(steps[0].call, _ORDER)
                pending = False
                yield statement

    def _holds_backward(self, statement: ast.stmt) -> bool:
        inner = {statement, *statements_below(statement)}
        return not self.training.gradients.isdisjoint(inner)


def _same_loop(loop: ast.AST, outer: ast.AST, routine: Routine) -> bool:
    return loop is outer or (outer is routine and not isinstance(loop, LOOPS))


def step_groups(training: Training, program: Program) -> dict[ast.AST, list[Step]]:
    """The steps of each loop: those of one iteration."""
    groups: dict[ast.AST, list[Step]] = {}
    for step in training.steps:
        loop = next(
            (
                node
                for node in program.tree.upwards(step.statement)
                if node is training.routine or isinstance(node, LOOPS)
            ),
            training.routine,
        )
        groups.setdefault(loop, []).append(step)
    return groups

"""Mixed precision with torch's own autocast, and GradScaler around backward, clipping and steps."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torchferry.conversion.amp.autocast import overflowing
from torchferry.conversion.amp.changes import UnclearStepError, first_import, torch_name
from torchferry.conversion.amp.regions import Regions
from torchferry.conversion.amp.state import Checkpoints, own_optimizers, reaches, scaler_place
from torchferry.conversion.amp.steps import Backward, Step, TrainingSteps
from torchferry.conversion.program.blocks import LOOPS, heads_of, statements_below
from torchferry.conversion.program.changes import ModuleChanges
from torchferry.conversion.program.module import PassModule, called_method, calls_in, last_name
from torchferry.conversion.rule import Proposal
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

# Gradients that a training step looks at between backward and the optimizer's step: clipping, norms, logging.

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


def read_before_steps(program: PassModule, training: TrainingSteps) -> list[Read]:
    """Where gradients are looked at; raises UnclearStepError if that is anywhere else than right before a step."""
    reading = [item for item in statements_below(training.routine) if _reads(item, program, training)]
    found: list[Read] = []
    done: set[ast.stmt] = set()
    for step in training.steps:
        for statement in _since_backward(step, program, training):
            inner = [item for item in reading if item in (statement, *statements_below(statement))]
            if not inner or done.issuperset(inner):
                continue
            if step.many is not None:
                raise UnclearStepError(step.call, _APART)
            done.update(inner)
            if found and found[-1].step is step:
                found[-1] = Read(found[-1].statement, step, (*found[-1].reading, *inner))
            else:
                found.append(Read(statement, step, tuple(inner)))
    for statement in reading:
        if statement not in done and _is_between(statement, program, training):
            raise UnclearStepError(statement, _APART)
    return found


def _since_backward(step: Step, program: PassModule, training: TrainingSteps) -> list[ast.stmt]:
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


def _is_between(statement: ast.stmt, program: PassModule, training: TrainingSteps) -> bool:
    """Whether a statement runs after a backward and before the next step."""
    for backward in training.gradients:
        loop = program.tree.holder(backward, *LOOPS)
        if loop is not program.tree.root and loop not in set(program.tree.upwards(statement)):
            continue
        first, last = backward.lineno, statement.lineno
        if first <= last and not any(first < step.statement.lineno < last for step in training.steps):
            return True
    return False


def _reads(statement: ast.stmt, program: PassModule, training: TrainingSteps) -> bool:
    if any(_CLIPS.search(called_method(call) or last_name(call.func)) for call in calls_in(statement)):
        return True
    for head in heads_of(statement):
        for node in ast.walk(head):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                if _is_reset(statement) or program.qualified(node, training.routine):
                    continue
                if not _PARAMETERS.match(last_name(node.value)):
                    raise UnclearStepError(node, _INPUT_GRADIENT)
                return True
    return False


def _is_reset(statement: ast.stmt) -> bool:
    """p.grad.zero_(), p.grad.data.zero_(), or a test whether there is a gradient."""
    if isinstance(statement, (ast.If, ast.Assert)):
        return ".grad is " in ast.unparse(statement.test)
    return ".zero_(" in ast.unparse(statement)


def clips_of(program: PassModule, training: TrainingSteps) -> Iterator[tuple[ast.Call, Step]]:
    """The calls that clip the gradients of `model.parameters()`; raises UnclearStepError if gradients are read otherwise."""
    for read in read_before_steps(program, training):
        for statement in read.reading:
            clips = [item for item in calls_in(statement) if _CLIPS.search(last_name(item.func))]
            if not clips:
                raise UnclearStepError(statement, _NOT_CLIPPED)
            for call in clips:
                first = call.args[0] if call.args else None
                if not isinstance(first, ast.Call) or called_method(first) != "parameters":
                    raise UnclearStepError(call, _NOT_CLIPPED)
                yield call, read.step


_SCALED = Text(
    "Loss scaled, so that small gradients survive in half precision", "缩放损失，使半精度下小梯度不丢失"
)
_STEPPED = Text("Step skipped when a gradient overflows", "梯度溢出时跳过该步")
_UNSCALED = Text("Gradients unscaled before they are read", "读取前先还原梯度")
_ORDER = Text(
    "it is not clear where the scaler is updated: the steps of one iteration must come before its one update",
    "不清楚在何处更新 scaler：一次迭代的所有 step 须在唯一一次 update 之前",
)


class LossScaling:
    """Adds the edits for one training step."""

    def __init__(
        self, program: PassModule, changes: ModuleChanges, training: TrainingSteps, scaler: str
    ) -> None:
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
        updates = [
            item
            for node, steps in groups.items()
            for item in self._updates_in([self.tree.path(step.statement, node) for step in steps], steps)
        ]
        for step in self.training.steps:  # optimizer.step() -> scaler.step(optimizer)
            text = f"{self.scaler}.step({self.module.segment(step.optimizer)})"
            self.changes.at(step.call, _STEPPED, self.module.replacement(step.call, text))
        for statement in updates:
            self.changes.items[-1].edits.append(self.changes.below(statement, f"{self.scaler}.update()"))
        for read in unscaled:
            text = f"{self.scaler}.unscale_({self.module.segment(read.step.optimizer)})"
            change = self.changes.at(read.statement, _UNSCALED)
            change.edits.append(self.changes.above(read.statement, text))

    def _scale(self, backward: Backward, name: str) -> None:
        """loss.backward() -> scaler.scale(loss).backward()"""
        call, loss = backward.call, backward.loss
        start = self.module.start(call)
        dot = self.module.data.rindex(b".", start, self.module.attribute_span(call.func)[0])  # type: ignore[arg-type]
        if name:
            edits = [Edit(start, dot, f"{self.scaler}.scale({name})")]
        elif start < self.module.start(loss):  # in parentheses already
            edits = [Edit(start, start, f"{self.scaler}.scale")]
        else:
            edits = [Edit(start, start, f"{self.scaler}.scale("), self.module.insertion_after(loss, ")")]
        self.changes.at(call, _SCALED, *edits)

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
                    if inner in around or statement.lineno >= inner.lineno:
                        continue
                    loop = self.tree.holder(statement, *LOOPS)
                    is_of_routine = outer is self.training.routine and not isinstance(loop, LOOPS)
                    if is_of_routine or (loop is outer and outer in around):
                        raise UnclearStepError(statement, _ORDER)

    def _updates_in(self, paths: list[list[ast.stmt]], steps: list[Step]) -> Iterator[ast.stmt]:
        """The statements of one iteration below which the scaler is updated; `paths` lead down to the steps."""
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
            raise UnclearStepError(steps[0].call, _ORDER)
        for child in children:
            inner = [(p[1:], s) for p, s in zip(paths, steps, strict=True) if p[0] is child]
            for block in {id(self.tree.position(p[0]).block): None for p, _ in inner}:
                chosen = [(p, s) for p, s in inner if id(self.tree.position(p[0]).block) == block]
                yield from self._updates_in([p for p, _ in chosen], [s for _, s in chosen])

    def _each_alone(self, steps: list[Step], paths: list[list[ast.stmt]]) -> Iterator[ast.stmt]:
        """One optimizer steps several times in an iteration: right if each step has a backward of its own before."""
        if any(len(path) > 1 for path in paths):
            raise UnclearStepError(steps[0].call, _ORDER)
        block = self.tree.position(paths[0][0]).block
        pending = False
        for statement in block:
            if self._holds_backward(statement):
                pending = True
            if statement in (path[0] for path in paths):
                if not pending:
                    raise UnclearStepError(steps[0].call, _ORDER)
                pending = False
                yield statement

    def _holds_backward(self, statement: ast.stmt) -> bool:
        inner = {statement, *statements_below(statement)}
        return not self.training.gradients.isdisjoint(inner)


def step_groups(training: TrainingSteps, program: PassModule) -> dict[ast.AST, list[Step]]:
    """The steps of each loop: those of one iteration."""
    groups: dict[ast.AST, list[Step]] = {}
    for step in training.steps:
        around = program.tree.upwards(step.statement)
        loops = (node for node in around if node is training.routine or isinstance(node, LOOPS))
        loop = next(loops, training.routine)
        groups.setdefault(loop, []).append(step)
    return groups


_MADE = Text("One GradScaler added for all training steps", "为所有训练步添加一个 GradScaler")
_NO_PLACE = Text(
    "there is no place for a GradScaler that every training step reaches",
    "找不到所有训练步都能访问 GradScaler 的位置",
)
_SCHEDULER = Message(
    Text("Warning about the scheduler is harmless", "关于调度器的警告无害"),
    why=Text(
        "If the first steps overflow and are skipped, PyTorch warns that the scheduler steps before the "
        "optimizer.",
        "若最初几步因溢出被跳过，PyTorch 会警告调度器先于优化器 step。",
    ),
)
LOST = Text(
    "autocast refuses BCELoss, and the calls of this loss are not clear; compute it in float32 under "
    "autocast(enabled=False), or use BCEWithLogitsLoss on the values before the sigmoid",
    "autocast 不允许 BCELoss，且此处损失的调用位置不清楚；请在 autocast(enabled=False) 下以 float32 计算，"
    "或对 sigmoid 之前的值使用 BCEWithLogitsLoss",
)
_MISSED = Message(
    Text("Checkpoint without the state of `{scaler}`", "未保存 `{scaler}` 状态的检查点"),
    why=Text("The scaler is made in another function.", "该 scaler 在另一函数中创建。"),
    do=Text("Add `{scaler}.state_dict()` to the checkpoint.", "请把 `{scaler}.state_dict()` 加入检查点。"),
)


def proposals(program: PassModule, trainings: list[TrainingSteps]) -> Iterator[Proposal]:
    """Everything that these training steps need; raises UnclearStepError before anything is proposed."""
    changes = ModuleChanges(program.module)
    place = scaler_place(trainings, program)
    if place is None or first_import(program) is None:
        raise UnclearStepError(trainings[0].steps[0].call, _NO_PLACE)
    torch = torch_name(program, changes)
    text = f"{place.name} = {torch}.cuda.amp.GradScaler()"
    change = changes.at(place.below, _MADE)
    rank, edit = changes.below(place.below, text)
    if isinstance(place.below, (ast.Import, ast.ImportFrom)) and not edit.text.startswith(";"):
        edit = replace(edit, text=changes.module.newline + edit.text)
    change.edits.append((rank, edit))
    regions = Regions(program, changes, f"{torch}.cuda.amp.autocast")
    for loss in regions.unsafe.lost():
        raise UnclearStepError(loss, LOST)
    parts = {part.routine: part for training in trainings for part in (training, *training.helpers)}
    for part in parts.values():
        renamed = regions.cover(part)
        LossScaling(program, changes, part, place.name).apply(renamed)
    regions.cover_helpers(trainings)

    def is_within_reach(statement: ast.stmt) -> bool:
        return reaches(place, program.routine_of(statement), program)

    optimizers = own_optimizers(trainings)
    missed = Checkpoints(program, changes, place.name, "scaler", optimizers, is_within_reach).add_state()
    yield from changes.proposals()
    yield from overflowing(program)
    for node in missed:
        yield program.context.propose(Kind.TODO, node, _MISSED.format(scaler=place.name))
    steps = {step.call for training in trainings for step in training.steps}
    for _, call in program.statement_calls:
        is_step = called_method(call) == "step" and call not in steps
        if is_step and "sched" in last_name(call.func.value).lower():  # type: ignore[attr-defined]
            yield program.context.propose(Kind.INFO, call, _SCHEDULER)
            return

"""Mixed precision with torch's own autocast and GradScaler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.amp.changes import Changes, UnclearStepError, first_import, torch_name
from torchferry.convert.amp.checkpoints import Checkpoints, CheckpointState
from torchferry.convert.amp.placement import ScalerPlace, own_optimizers, reaches, scaler_place
from torchferry.convert.amp.regions import Regions
from torchferry.convert.amp.scaling import LossScaling
from torchferry.convert.amp.steps import TrainingSteps
from torchferry.convert.amp.unsafe import overflowing
from torchferry.convert.program.module import ProgramModule, calls_in, last_name
from torchferry.convert.rule import Proposal
from torchferry.finding import Kind
from torchferry.text import Text

_MADE = Text(
    "one GradScaler for all training steps: it scales the losses, and adapts when gradients overflow",
    "所有训练步共用一个 GradScaler：缩放损失，并在梯度溢出时自动调整",
)
_NO_PLACE = Text(
    "there is no place for a GradScaler that every training step reaches",
    "找不到所有训练步都能访问 GradScaler 的位置",
)
_SCHEDULER = Text(
    "when the first steps overflow and are skipped, PyTorch warns that the scheduler steps before the optimizer; "
    "that is harmless",
    "若最初几步因溢出被跳过，PyTorch 会警告调度器先于优化器 step；无害",
)
LOST = Text(
    "autocast refuses BCELoss, and it is not clear where this one is called; there it must be computed in float32 "
    "under autocast(enabled=False), or be BCEWithLogitsLoss on the values before the sigmoid",
    "autocast 不允许 BCELoss，且不清楚此处的损失在哪里被调用；调用处须在 autocast(enabled=False) 下以 float32 计算，"
    "或改用 sigmoid 之前的值与 BCEWithLogitsLoss",
)
_MISSED = Text(
    "add the state of `{scaler}` to this checkpoint: it is made in another function",
    "请将 `{scaler}` 的状态加入此检查点：它在另一函数中创建",
)


def proposals(program: ProgramModule, trainings: list[TrainingSteps]) -> Iterator[Proposal]:
    """Everything that these training steps need; raises UnclearStepError before anything is proposed."""
    changes = Changes(program.module)
    place = scaler_place(trainings, program)
    if place is None or first_import(program) is None:
        raise UnclearStepError(trainings[0].steps[0].call, _NO_PLACE)
    torch = torch_name(program, changes)
    _make_scaler(changes, place, torch)
    regions = Regions(program, changes, f"{torch}.cuda.amp.autocast")
    for loss in regions.unsafe.lost():
        raise UnclearStepError(loss, LOST)
    parts = {part.routine: part for training in trainings for part in (training, *training.helpers)}
    for part in parts.values():
        renamed = regions.cover(part)
        LossScaling(program, changes, part, place.name).apply(renamed)
    regions.cover_helpers(trainings)
    checkpoints = _checkpoints(program, changes, place, trainings)
    yield from changes.proposals()
    yield from overflowing(program)
    for node in checkpoints.missed:
        yield program.context.propose(Kind.TODO, node, _MISSED.format(scaler=place.name))
    yield from _about_schedulers(program, trainings)


def _make_scaler(changes: Changes, place: ScalerPlace, torch: str) -> None:
    text = f"{place.name} = {torch}.cuda.amp.GradScaler()"
    change = changes.at(place.below, _MADE)
    rank, edit = changes.below(place.below, text)
    if isinstance(place.below, (ast.Import, ast.ImportFrom)) and not edit.text.startswith(";"):
        edit = type(edit)(edit.start, edit.end, changes.module.newline + edit.text)
    change.edits.append((rank, edit))


def _checkpoints(
    program: ProgramModule, changes: Changes, place: ScalerPlace, trainings: list[TrainingSteps]
) -> Checkpoints:
    def is_within_reach(statement: ast.stmt) -> bool:
        return reaches(place, program.routine_of(statement), program)

    state = CheckpointState(place.name, "scaler", frozenset(own_optimizers(trainings)), is_within_reach)
    checkpoints = Checkpoints(program, changes, state)
    checkpoints.apply()
    return checkpoints


def _about_schedulers(program: ProgramModule, trainings: list[TrainingSteps]) -> Iterator[Proposal]:
    steps = {step.call for training in trainings for step in training.steps}
    for statement in program.statements:
        for call in calls_in(statement):
            if call not in steps and _steps_scheduler(call):
                yield program.context.propose(Kind.INFO, call, _SCHEDULER)
                return


def _steps_scheduler(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "step"
        and "sched" in last_name(function.value).lower()
    )

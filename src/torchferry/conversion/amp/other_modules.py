"""Checkpoints in a module that imports its training step: they keep the scaler of the module which trains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchferry.conversion.amp import torch_form
from torchferry.conversion.amp.changes import ModuleChanges, UnclearStepError, first_import, torch_name
from torchferry.conversion.amp.regions import Regions
from torchferry.conversion.amp.state import Checkpoints, CheckpointState, scaler_place
from torchferry.conversion.amp.steps import TrainingFinder, existing_precision
from torchferry.conversion.amp.torch_form import LOST
from torchferry.conversion.amp.unsafe import WORDS, overflowing
from torchferry.conversion.program.blocks import heads_of
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.module import PassModule, called_method, last_name
from torchferry.conversion.program.neighbours import Definition
from torchferry.conversion.rule import Proposal
from torchferry.finding import Kind
from torchferry.source.scopes import Binding, BindingKind
from torchferry.text import Text

_IMPORTED = Text(
    "the scaler of the training step, for the checkpoints of this module",
    "训练步的 scaler，供本模块的检查点使用",
)
_OPTIMIZER = re.compile(r"(?i)optim|^opt(_?\w)?$")


def checkpoint_proposals(program: PassModule) -> Iterator[Proposal]:
    """Add the state of an imported training step's scaler to the checkpoints of a module without one of its own."""
    optimizers = frozenset(_saved_optimizers(program))
    if not optimizers:
        return
    for binding in _imports(program):
        found = program.context.neighbours.find(program.context.path, binding.qualified)
        name = _scaler_of(program, found) if found is not None else ""
        if name and name not in program.identifiers and isinstance(binding.node, ast.ImportFrom):
            yield from _with_scaler(program, binding.node, name, optimizers)
            return


def _saved_optimizers(program: PassModule) -> Iterator[str]:
    if b"state_dict(" not in program.module.data:
        return
    for statement in program.statements:
        for head in heads_of(statement):
            for node in ast.walk(head):
                if isinstance(node, ast.Call) and called_method(node) in ("state_dict", "load_state_dict"):
                    name = last_name(node.func.value)  # type: ignore[attr-defined]
                    if _OPTIMIZER.search(name):
                        yield name


def _imports(program: PassModule) -> Iterator[Binding]:
    for bindings in program.module.scopes.root.bindings.values():
        for binding in bindings:
            if binding.kind is BindingKind.IMPORT:
                yield binding


def _scaler_of(program: PassModule, found: Definition) -> str:
    """The module-level scaler that a function of another module gets, "" if it gets none."""
    if not isinstance(found.binding.node, FUNCTIONS):
        return ""
    context = replace(
        program.context, module=found.module, path=found.path, resolved={}, words={}, positions={}
    )
    other = PassModule(context)
    try:
        trainings = TrainingFinder(other).find()
        if found.binding.node not in {item.routine for item in trainings} or existing_precision(found.module):
            return ""
        list(torch_form.proposals(other, trainings))
        place = scaler_place(trainings, other)
    except UnclearStepError:
        return ""
    return place.name if place is not None and isinstance(place.owner, ast.Module) else ""


def _with_scaler(
    program: PassModule, imported: ast.ImportFrom, name: str, optimizers: frozenset[str]
) -> Iterator[Proposal]:
    changes = ModuleChanges(program.module)
    checkpoints = Checkpoints(program, changes, CheckpointState(name, "scaler", optimizers, lambda _: True))
    checkpoints.apply()
    if changes.items:
        line = f"from {'.' * imported.level}{imported.module or ''} import {name}"
        changes.at(imported, _IMPORTED).edits.append(changes.below(imported, line))
        yield from changes.proposals()


# What autocast refuses in a module that does not train itself, but whose functions the project's
# training calls.

_REFUSED = Text(
    "autocast refuses binary cross entropy of probabilities: compute it in float32 under "
    "torch.cuda.amp.autocast(enabled=False); not done here: {reason}",
    "autocast 不允许对概率计算二元交叉熵：须在 torch.cuda.amp.autocast(enabled=False) 下以 float32 计算；此处未改：{reason}",
)
_LOSSES = (b"BCELoss", b"binary_cross_entropy")
# A module that trains, and has no mixed precision of its own.
_TRAINS = b".backward("
_HAS_PRECISION = (b"autocast", b"GradScaler")


def loss_proposals(program: PassModule) -> Iterator[Proposal]:
    """Compute such losses in float32, outside of the autocast that their callers get; report masks."""
    data = program.module.data
    if not any(word in data for word in (*_LOSSES, *WORDS)) or not _is_trained(program):
        return
    if existing_precision(program.module) is not None:
        return
    yield from overflowing(program)
    if any(word in data for word in _LOSSES) and first_import(program) is not None:
        yield from _of_losses(program)


def _of_losses(program: PassModule) -> Iterator[Proposal]:
    changes = ModuleChanges(program.module)
    torch = torch_name(program, changes)
    regions = Regions(program, changes, f"{torch}.cuda.amp.autocast")
    added = len(changes.items)
    for node in regions.unsafe.lost():
        yield program.context.propose(Kind.TODO, node, LOST)
    try:
        regions.cover_helpers([])
    except UnclearStepError as problem:
        yield program.context.propose(Kind.TODO, problem.node, _REFUSED.format(reason=problem.reason))
        return
    if len(changes.items) > added:
        yield from changes.proposals()


def _is_trained(program: PassModule) -> bool:
    """Whether a module of the project trains and gets mixed precision, and any imports something of this one."""
    neighbours, path = program.context.neighbours, program.context.path
    if not neighbours.any_text(_TRAINS, *_HAS_PRECISION):
        return False
    return neighbours.is_imported(path)

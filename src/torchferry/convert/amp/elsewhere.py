"""Checkpoints in a module that imports its training step: they keep the scaler of the module which trains."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchferry.convert.amp import torch_form
from torchferry.convert.amp.changes import Changes
from torchferry.convert.amp.checkpoints import Checkpoints, State
from torchferry.convert.amp.existing import existing_precision
from torchferry.convert.amp.placement import scaler_place
from torchferry.convert.amp.steps import TrainingFinder
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.blocks import FUNCTIONS, heads_of
from torchferry.convert.neighbours import Definition
from torchferry.convert.program import Program, last_name, method_of
from torchferry.convert.rule import Proposal
from torchferry.source.scopes import Binding, BindingKind
from torchferry.text import Text

_IMPORTED = Text(
    "the scaler of the training step, for the checkpoints of this module",
    "训练步的 scaler，供本模块的检查点使用",
)
_OPTIMIZER = re.compile(r"(?i)optim|^opt(_?\w)?$")


def proposals(program: Program) -> Iterator[Proposal]:
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


def _saved_optimizers(program: Program) -> Iterator[str]:
    if b"state_dict(" not in program.module.data:
        return
    for statement in program.statements:
        for head in heads_of(statement):
            for node in ast.walk(head):
                if isinstance(node, ast.Call) and method_of(node) in ("state_dict", "load_state_dict"):
                    name = last_name(node.func.value)  # type: ignore[attr-defined]
                    if _OPTIMIZER.search(name):
                        yield name


def _imports(program: Program) -> Iterator[Binding]:
    for bindings in program.module.scopes.root.bindings.values():
        for binding in bindings:
            if binding.kind is BindingKind.IMPORT:
                yield binding


def _scaler_of(program: Program, found: Definition) -> str:
    """The module-level scaler that a function of another module gets, "" if it gets none."""
    if not isinstance(found.binding.node, FUNCTIONS):
        return ""
    context = replace(
        program.context, module=found.module, path=found.path, resolved={}, words={}, positions={}
    )
    other = Program(context)
    try:
        trainings = TrainingFinder(other).find()
        if found.binding.node not in {item.routine for item in trainings} or existing_precision(found.module):
            return ""
        list(torch_form.proposals(other, trainings))
        place = scaler_place(trainings, other)
    except UnclearError:
        return ""
    return place.name if place is not None and isinstance(place.owner, ast.Module) else ""


def _with_scaler(
    program: Program, imported: ast.ImportFrom, name: str, optimizers: frozenset[str]
) -> Iterator[Proposal]:
    changes = Changes(program.module)
    checkpoints = Checkpoints(program, changes, State(name, "scaler", optimizers, lambda _: True))
    checkpoints.apply()
    if changes.items:
        line = f"from {'.' * imported.level}{imported.module or ''} import {name}"
        changes.at(imported, _IMPORTED).edits.append(changes.below(imported, line))
        yield from changes.proposals()

"""Where the objects of mixed precision are made, so that every training step of a module reaches them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from torchferry.convert.amp.changes import loads_plugin
from torchferry.convert.amp.steps import Step, TrainingSteps
from torchferry.convert.program.blocks import DEFINITIONS, FUNCTIONS, LOOPS, is_main_guard, statements_below
from torchferry.convert.program.module import ProgramModule, Routine, last_name, text_of
from torchferry.source.scopes import BindingKind


@dataclass(frozen=True)
class OptimizerOwner:
    """Who holds an optimizer: a function, a class (as attribute of `self`), or the module."""

    node: ast.AST
    created: ast.stmt | None  # the last statement that makes it; None: elsewhere

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


def owner_of(step: Step, routine: Routine, program: ProgramModule) -> OptimizerOwner:
    """Who holds the optimizer of a step."""
    optimizer = step.many or step.optimizer
    while isinstance(optimizer, ast.Subscript):
        optimizer = optimizer.value
    if isinstance(optimizer, ast.Attribute) and text_of(optimizer.value) == "self":
        return _class_owner(optimizer.attr, routine, program)
    if isinstance(optimizer, ast.Name):
        return _variable_owner(optimizer, routine, program)
    return OptimizerOwner(program.module.tree, None)


def _class_owner(attribute: str, routine: Routine, program: ProgramModule) -> OptimizerOwner:
    owner = program.class_of(routine)
    made = [
        statement
        for statement in (statements_below(owner, into_definitions=True) if owner else ())
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and f"self.{attribute}" in _targets(statement)
    ]
    if owner is None or not made:
        return OptimizerOwner(program.module.tree, None)
    first = program.routine_of(made[0])
    return OptimizerOwner(owner, [item for item in made if program.routine_of(item) is first][-1])


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    found: list[str] = []
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        found += [text_of(part) for part in parts]
    return found


def _variable_owner(optimizer: ast.Name, routine: Routine, program: ProgramModule) -> OptimizerOwner:
    scope = program.scopes[routine].owner_of(optimizer.id)
    if scope is None or scope.is_class:
        return OptimizerOwner(program.module.tree, None)
    bindings = scope.bindings[optimizer.id]
    if any(binding.kind in (BindingKind.PARAMETER, BindingKind.IMPORT) for binding in bindings):
        return OptimizerOwner(program.module.tree, None)
    made = [
        statement
        for statement in statements_below(scope.node)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and optimizer.id in _targets(statement)
    ]
    return OptimizerOwner(scope.node, made[-1] if made else None)


@dataclass(frozen=True)
class ScalerPlace:
    """Where a new object is made: below a statement, and how it is called."""

    below: ast.stmt
    owner: ast.AST
    name: str

    @property
    def is_attribute(self) -> bool:
        return isinstance(self.owner, ast.ClassDef)


def scaler_place(trainings: list[TrainingSteps], program: ProgramModule) -> ScalerPlace | None:
    """Below the optimizers where all steps of the module have those at hand, else below the imports."""
    owners = [owner_of(step, item.routine, program) for item in trainings for step in item.steps]
    name = program.free_name("scaler", "grad_scaler", "loss_scaler")
    nodes = {owner.node for owner in owners}
    created = [owner.created for owner in owners if owner.created is not None]
    if len(nodes) == 1 and len(created) == len(owners):
        steps = [step.statement for item in trainings for step in item.steps]
        below = lifted(created, steps, program)
        owner = owners[0]
        # An attribute, or a variable, that is made in one function only, and always before the steps.
        is_made_once = len({program.routine_of(item) for item in created}) == 1
        has_helpers = any(item.helpers for item in trainings) and isinstance(owner.node, FUNCTIONS)
        if is_made_once and not has_helpers and comes_before(below, steps, program):
            return ScalerPlace(below, owner.node, f"self.{name}" if owner.is_class else name)
    import_above = last_import(program, trainings)
    return ScalerPlace(import_above, program.module.tree, name) if import_above is not None else None


def comes_before(below: ast.stmt, steps: list[ast.stmt], program: ProgramModule) -> bool:
    """Whether a statement runs before these steps of its own function, if it runs at all, and not before each of them
    anew."""
    block = program.tree.position(below).block
    around_below = set(program.tree.upwards(below))
    for step in steps:
        if (
            next((node for node in program.tree.upwards(step) if isinstance(node, LOOPS)), None)
            in around_below
        ):
            return False
        if program.routine_of(step) is not program.routine_of(below):
            continue
        around = [item for item in (step, *program.tree.upwards(step)) if item in block]
        if not around or block.index(around[0]) <= block.index(below):
            return False
    return True


def lifted(created: list[ast.stmt], steps: list[ast.stmt], program: ProgramModule) -> ast.stmt:
    """The last of the statements that make optimizers, or the branches around it: what always runs before a step."""
    last = max(created, key=lambda item: item.lineno)
    around_steps = {node for step in steps for node in program.tree.upwards(step)}
    for node in program.tree.upwards(last):
        if node in around_steps or isinstance(node, (*DEFINITIONS, *LOOPS)) or is_main_guard(node):
            break
        last = node
    return last


def last_import(program: ProgramModule, trainings: list[TrainingSteps]) -> ast.stmt | None:
    """The last import at the top of the module, before the first training step."""
    parts = [part for training in trainings for part in (training, *training.helpers)]
    limit = min(_top(part, program).lineno for part in parts)
    found: list[ast.stmt] = []
    for statement in program.module.tree.body:
        if statement.lineno >= limit:
            break
        inner: Iterable[ast.stmt] = (statement, *statements_below(statement))
        if any(isinstance(item, (ast.Import, ast.ImportFrom)) for item in inner):
            if not isinstance(statement, DEFINITIONS) and not is_main_guard(statement):
                found.append(statement)
    return found[-1] if any(not loads_plugin(program, item) for item in found) else None


def _top(training: TrainingSteps, program: ProgramModule) -> ast.stmt:
    """The statement of the module's own level that holds a training step."""
    inside = next(iter({*training.gradients, *(step.statement for step in training.steps)}))
    return program.tree.path(inside, program.module.tree)[0]


def reaches(place: ScalerPlace, routine: Routine, program: ProgramModule) -> bool:
    """Whether code of a routine can use what is made at a place."""
    if isinstance(place.owner, ast.Module):
        return True
    if place.is_attribute:
        return program.class_of(routine) is place.owner
    return place.owner is routine or any(
        node is place.owner
        for node in (program.tree.upwards(routine) if isinstance(routine, FUNCTIONS) else ())
    )


def own_optimizers(trainings: list[TrainingSteps]) -> set[str]:
    """The last names of the optimizers of these training steps."""
    return {last_name(step.many or step.optimizer) for item in trainings for step in item.steps} - {""}

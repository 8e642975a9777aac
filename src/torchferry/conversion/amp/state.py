"""Where the objects of mixed precision are made, so that every step reaches them, and how checkpoints keep them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torchferry.conversion.amp.changes import loads_plugin
from torchferry.conversion.amp.steps import Step, TrainingSteps
from torchferry.conversion.program.blocks import (
    DEFINITIONS,
    LOOPS,
    heads_of,
    indent_unit,
    is_main_guard,
    shares_its_line,
    statements_below,
)
from torchferry.conversion.program.changes import ModuleChanges
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.module import PassModule, Routine, called_method, last_name
from torchferry.source.edits import Edit
from torchferry.source.scopes import BindingKind
from torchferry.text import Text


@dataclass(frozen=True)
class OptimizerOwner:
    """Who holds an optimizer: a function, a class (as attribute of `self`), or the module."""

    node: ast.AST
    created: ast.stmt | None  # the last statement that makes it; None: elsewhere

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


def owner_of(step: Step, routine: Routine, program: PassModule) -> OptimizerOwner:
    """Who holds the optimizer of a step."""
    optimizer = step.many or step.optimizer
    while isinstance(optimizer, ast.Subscript):
        optimizer = optimizer.value
    if isinstance(optimizer, ast.Attribute) and ast.unparse(optimizer.value) == "self":
        return _class_owner(optimizer.attr, routine, program)
    if isinstance(optimizer, ast.Name):
        scope = program.scopes[routine].owner_of(optimizer.id)
        if scope is None or scope.is_class:
            return OptimizerOwner(program.module.tree, None)
        bindings = scope.bindings[optimizer.id]
        if any(binding.kind in (BindingKind.PARAMETER, BindingKind.IMPORT) for binding in bindings):
            return OptimizerOwner(program.module.tree, None)
        made = _assigning(statements_below(scope.node), optimizer.id)
        return OptimizerOwner(scope.node, made[-1] if made else None)
    return OptimizerOwner(program.module.tree, None)


def _class_owner(attribute: str, routine: Routine, program: PassModule) -> OptimizerOwner:
    owner = program.class_of(routine)
    statements = statements_below(owner, into_definitions=True) if owner else ()
    made = _assigning(statements, f"self.{attribute}")
    if owner is None or not made:
        return OptimizerOwner(program.module.tree, None)
    first = program.routine_of(made[0])
    return OptimizerOwner(owner, [item for item in made if program.routine_of(item) is first][-1])


def _assigning(statements: Iterable[ast.stmt], name: str) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in statements:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                if name in map(ast.unparse, parts):
                    found.append(statement)
    return found


@dataclass(frozen=True)
class ScalerPlace:
    """Where a new object is made: below a statement, and how it is called."""

    below: ast.stmt
    owner: ast.AST
    name: str

    @property
    def is_attribute(self) -> bool:
        return isinstance(self.owner, ast.ClassDef)


def scaler_place(trainings: list[TrainingSteps], program: PassModule) -> ScalerPlace | None:
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


def comes_before(below: ast.stmt, steps: list[ast.stmt], program: PassModule) -> bool:
    """Whether a statement runs before these steps of its own function, if it runs at all, and not before each of them
    anew."""
    block = program.tree.position(below).block
    around_below = set(program.tree.upwards(below))
    for step in steps:
        loop = next((node for node in program.tree.upwards(step) if isinstance(node, LOOPS)), None)
        if loop in around_below:
            return False
        if program.routine_of(step) is not program.routine_of(below):
            continue
        around = [item for item in (step, *program.tree.upwards(step)) if item in block]
        if not around or block.index(around[0]) <= block.index(below):
            return False
    return True


def lifted(created: list[ast.stmt], steps: list[ast.stmt], program: PassModule) -> ast.stmt:
    """The last of the statements that make optimizers, or the branches around it: what always runs before a step."""
    last = max(created, key=lambda item: item.lineno)
    around_steps = {node for step in steps for node in program.tree.upwards(step)}
    for node in program.tree.upwards(last):
        if node in around_steps or isinstance(node, (*DEFINITIONS, *LOOPS)) or is_main_guard(node):
            break
        last = node
    return last


def last_import(program: PassModule, trainings: list[TrainingSteps]) -> ast.stmt | None:
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


def _top(training: TrainingSteps, program: PassModule) -> ast.stmt:
    """The statement of the module's own level that holds the first training step."""
    statements = (*training.gradients, *(step.statement for step in training.steps))
    inside = min(statements, key=lambda statement: statement.lineno)
    return program.tree.path(inside, program.module.tree)[0]


def reaches(place: ScalerPlace, routine: Routine, program: PassModule) -> bool:
    """Whether code of a routine can use what is made at a place."""
    if isinstance(place.owner, ast.Module):
        return True
    if place.is_attribute:
        return program.class_of(routine) is place.owner
    around = program.tree.upwards(routine) if isinstance(routine, FUNCTIONS) else ()
    return place.owner is routine or place.owner in around


def own_optimizers(trainings: list[TrainingSteps]) -> set[str]:
    """The last names of the optimizers of these training steps."""
    return {last_name(step.many or step.optimizer) for item in trainings for step in item.steps} - {""}


# The state of mixed precision in checkpoints, beside that of the optimizer.

_SAVED = Text("Scale of the losses saved in the checkpoint", "损失缩放系数存入检查点")
_LOADED = Text("Scale restored from a checkpoint that has one", "从含有缩放系数的检查点恢复")


@dataclass
class Checkpoints:
    """What a module saves and loads: the object with the state, the key it gets, and which statements can use it."""

    program: PassModule
    changes: ModuleChanges
    holder: str
    key: str
    optimizers: set[str]  # last names; beside their state ours is kept
    is_within_reach: Callable[[ast.stmt], bool]
    missed: list[ast.AST] = field(default_factory=list)  # places that the state does not reach

    def __post_init__(self) -> None:
        self.module = self.program.module

    def add_state(self) -> list[ast.AST]:
        """Add the edits; the answer is the places that the state does not reach."""
        done: set[ast.AST] = set()
        for statement in self.program.statements:
            for node in (item for head in heads_of(statement) for item in ast.walk(head)):
                if isinstance(node, (ast.Dict, ast.Call)) and node not in done and self._is_saved(node):
                    done.add(node)
                    self._within_reach(statement, node, self._extend)
            if isinstance(statement, ast.Assign) and self._is_own(statement.value, "state_dict"):
                self._within_reach(statement, statement, self._add_item)
            elif isinstance(statement, ast.Expr) and self._is_own(statement.value, "load_state_dict"):
                self._within_reach(statement, statement, self._load)
        return self.missed

    def _within_reach(
        self, statement: ast.stmt, node: ast.AST, act: Callable[[ast.AST, ast.stmt], None]
    ) -> None:
        if self.is_within_reach(statement):
            act(node, statement)
        else:
            self.missed.append(node)

    def _is_own(self, node: ast.AST, method: str) -> bool:
        """optimizer.state_dict() of one of the optimizers."""
        return (
            isinstance(node, ast.Call)
            and called_method(node) == method
            and last_name(node.func.value) in self.optimizers  # type: ignore[attr-defined]
        )

    def _is_saved(self, node: ast.Dict | ast.Call) -> bool:
        """{'optimizer': optimizer.state_dict()}, or the same as dict(...)."""
        if isinstance(node, ast.Dict):
            return any(self._is_own(value, "state_dict") for value in node.values)
        is_dict = isinstance(node.func, ast.Name) and node.func.id == "dict"
        return is_dict and any(self._is_own(item.value, "state_dict") for item in node.keywords)

    def _extend(self, node: ast.AST, statement: ast.stmt) -> None:
        value = f"{self.holder}.state_dict()"
        if isinstance(node, ast.Dict):
            index = max(i for i, item in enumerate(node.values) if self._is_own(item, "state_dict"))
            beside, key = node.values[index], node.keys[index]
            quote = self.module.segment(key)[-1] if isinstance(key, ast.Constant) else '"'
            entry = f"{quote}{self.key}{quote}: {value}"
            first = self.module.start(key) if key is not None else self.module.start(beside)
        else:
            assert isinstance(node, ast.Call)
            keyword = [item for item in node.keywords if self._is_own(item.value, "state_dict")][-1]
            beside, entry, first = keyword.value, f"{self.key}={value}", self.module.start(keyword)
        end = self.module.end(beside)
        self.changes.at(node, _SAVED, Edit(end, end, self._separator(node, first) + entry))

    def _separator(self, node: ast.AST, first: int) -> str:
        """A comma, and a new line where each entry has one."""
        line = self.module.line_of(first)
        before = self.module.data[self.module.line_starts[line - 1] : first].decode("utf-8")
        if before.strip() or self.module.line_of(self.module.start(node)) == line:
            return ", "
        return f",{self.module.newline}{before}"

    def _add_item(self, node: ast.AST, statement: ast.stmt) -> None:
        """state['optimizer'] = optimizer.state_dict()"""
        assert isinstance(statement, ast.Assign)
        target = statement.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
            return
        quote = self.module.segment(target.slice)[-1]
        base = self.module.segment(target.value)
        line = f"{base}[{quote}{self.key}{quote}] = {self.holder}.state_dict()"
        self.changes.add_below(statement, line, _SAVED)

    def _load(self, node: ast.AST, statement: ast.stmt) -> None:
        """optimizer.load_state_dict(checkpoint['optimizer'])"""
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        source = statement.value.args[0] if statement.value.args else None
        if not isinstance(source, ast.Subscript) or not isinstance(source.slice, ast.Constant):
            return
        if shares_its_line(self.module, statement) or not isinstance(source.value, (ast.Name, ast.Attribute)):
            self.missed.append(statement)
            return
        quote = self.module.segment(source.slice)[-1]
        base, key = self.module.segment(source.value), f"{quote}{self.key}{quote}"
        unit = indent_unit(self.module, statement, self.program.tree)
        lines = f"if {key} in {base}:\n{unit}{self.holder}.load_state_dict({base}[{key}])"
        self.changes.add_below(statement, lines, _LOADED)

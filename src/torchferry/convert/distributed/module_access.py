"""What is asked of a wrapped model but belongs to the model inside: `.module` where that is needed."""

from __future__ import annotations

import ast
from enum import Flag, auto

from torchferry.convert.distributed.changes import Changes
from torchferry.convert.distributed.training import Training
from torchferry.convert.distributed.wrapping import Wrap, given_anew
from torchferry.convert.program.origins import argument_for, returned
from torchferry.convert.program.training_program import (
    ASSIGNMENTS,
    FUNCTIONS,
    Function,
    ProgramFile,
    assigned_to,
)
from torchferry.source.edits import Edit
from torchferry.source.names import called_name
from torchferry.source.scopes import BindingKind
from torchferry.text import Text

# What DistributedDataParallel answers as the model itself would.
_ANSWERED = frozenset(
    {"train", "eval", "parameters", "zero_grad", "module", "no_sync", "to", "cuda", "cpu", "training", "half"}
    | {"float", "bfloat16", "requires_grad_", "buffers", "forward", "join", "register_comm_hook"}
)
# Functions that are to get the model itself: what they keep is read without a process group.
_TAKE_THE_MODEL = frozenset(
    {"torch.save", "copy.deepcopy", "torch.onnx.export", "torch.jit.trace", "torch.jit.script"}
)
_INSIDE = Text(
    "asks the model inside the DistributedDataParallel, so that checkpoints look as before",
    "访问 DistributedDataParallel 内部的模型，使检查点与之前一致",
)
_NOT_YET = Text("the model is not wrapped yet here", "模型在此处尚未被包装")
_DEPTH = 8


class State(Flag):
    """What a variable may hold."""

    NOTHING = 0
    BARE = auto()
    WRAPPED = auto()


class Unwrapping:
    """Puts `.module` where a wrapped model is asked for what only the model has."""

    def __init__(
        self, training: Training, wraps: list[Wrap], changes: Changes, had_data_parallel: bool = False
    ) -> None:
        self.training = training
        self.had_data_parallel = had_data_parallel
        self.wraps = wraps
        self.changes = changes
        self.made = {id(origin.node) for wrap in wraps for origin in wrap.holder.made}

    def rewrite(self) -> None:
        """Look at every attribute and argument of the program."""
        for file in self.training.program.files.values():
            for unit in file.module.scopes.units:
                for node in ast.walk(unit.node):
                    if isinstance(node, ast.Attribute) and node.attr not in _ANSWERED:
                        self._look_at(file, node.value)
                    elif isinstance(node, ast.Attribute) and node.attr == "module" and self.had_data_parallel:
                        self._look_at_inside(file, node)
                    elif isinstance(node, ast.Call) and _takes_the_model(file, node):
                        for argument in node.args:
                            self._look_at(file, argument)

    def _look_at(self, file: ProgramFile, node: ast.expr) -> None:
        if not isinstance(node, (ast.Name, ast.Attribute)) or not self._is_model(file, node):
            return
        state = self.state(file, node, _DEPTH)
        if not state & State.WRAPPED:
            return
        start, end = file.module.start(node), file.module.end(node)
        if state == State.WRAPPED and (file is self.training.program.main or self._is_holder(file, node)):
            self.changes.of(file).replace(node, _INSIDE, Edit(end, end, ".module"))
            return
        # Other programs may hand their model to this function, too, and that is not wrapped.
        text = file.module.segment(node)
        self.changes.of(file).replace(node, _INSIDE, Edit(start, end, f'getattr({text}, "module", {text})'))

    def _look_at_inside(self, file: ProgramFile, node: ast.Attribute) -> None:
        """`model.module` of a DataParallel that is gone, where the model is not wrapped again yet."""
        is_model = isinstance(node.value, (ast.Name, ast.Attribute)) and self._is_model(file, node.value)
        if is_model and self.state(file, node.value, _DEPTH) == State.BARE:
            edit = Edit(file.module.end(node.value), file.module.end(node), "")
            self.changes.of(file).replace(node, _NOT_YET, edit)

    def _is_model(self, file: ProgramFile, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "module":
            return False
        return any(id(origin.node) in self.made for origin in self.training.flow.origins(file, node))

    def state(self, file: ProgramFile, node: ast.expr, depth: int) -> State:
        """Whether the model is wrapped already where an expression is evaluated."""
        if not depth:
            return State.NOTHING
        for wrap in self.wraps:
            if wrap.holder.file is file and file.module.segment(node) == wrap.holder.text:
                found = self._at_holder(file, node, wrap)
                if found is not None:
                    return found
        if isinstance(node, ast.Name):
            return self._of_name(file, node, depth)
        if isinstance(node, ast.Attribute) and node.attr != "module":
            return self._of_attribute(file, node, depth)
        callee = self.training.flow.callee(file, node) if isinstance(node, ast.Call) else None
        if callee is not None and isinstance(callee.node, FUNCTIONS):
            return self._of_returned(callee.file, callee.node, depth)
        return State.BARE

    def _of_returned(self, file: ProgramFile, function: Function, depth: int) -> State:
        """What a function gives back, if that is a model at all; a tuple may hold one."""
        found = State.NOTHING
        for value in returned(function):
            parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
            for part in parts:
                if self._is_model(file, part):
                    found |= self.state(file, part, depth - 1)
        return found or State.BARE

    def _is_holder(self, file: ProgramFile, node: ast.expr) -> bool:
        """Whether an expression is the very variable that is wrapped."""
        return any(
            wrap.holder.file is file
            and file.module.segment(node) == wrap.holder.text
            and self._at_holder(file, node, wrap) is not None
            for wrap in self.wraps
        )

    def _at_holder(self, file: ProgramFile, node: ast.expr, wrap: Wrap) -> State | None:
        """The holder itself: wrapped behind the wrap, and in every other function that sees it."""
        standing = file.standing(node)
        if standing is None:
            return None
        if standing.scope is wrap.holder.scope:
            if file.module.start(node) <= wrap.position:
                return State.BARE
            return self._since(file, standing.statement, wrap)
        if wrap.holder.is_attribute:
            owners = file.owners(standing.statement)
            return State.WRAPPED if any(owner is wrap.holder.owner for owner in owners) else None
        is_seen = standing.scope.owner_of(wrap.holder.text) is wrap.holder.scope
        return State.WRAPPED if is_seen else None

    def _since(self, file: ProgramFile, statement: ast.stmt, wrap: Wrap) -> State:
        """Behind the wrap: whether the variable was given another model in between."""
        state = State.WRAPPED
        around = [file.module.tree, *file.owners(statement)]
        for fresh in given_anew(wrap):
            if file.module.end(fresh) <= file.module.start(statement):
                is_sure = file.blocks[id(fresh)].owner in around
                state = State.BARE if is_sure else state | State.BARE
        return state

    def _of_name(self, file: ProgramFile, node: ast.Name, depth: int) -> State:
        standing = file.standing(node)
        owner = standing.scope.owner_of(node.id) if standing else None
        found = State.NOTHING
        for binding in owner.bindings[node.id] if owner else ():
            if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                found |= self.state(file, binding.value, depth - 1)
            elif binding.kind is BindingKind.OTHER:
                assign = file.parent(file.parent(binding.node) or binding.node)  # `a, b = value`
                found |= (
                    self.state(file, assign.value, depth - 1) if isinstance(assign, ast.Assign) else found
                )
            elif binding.kind is BindingKind.PARAMETER and owner and isinstance(owner.node, FUNCTIONS):
                for site in self.training.flow.sites.get(id(owner.node), ()):
                    value = argument_for(site.call, owner.node, node.id)
                    if value is not None and self._is_model(site.file, value):
                        found |= self.state(site.file, value, depth - 1)
        return found

    def _of_attribute(self, file: ProgramFile, node: ast.Attribute, depth: int) -> State:
        """An attribute of another object: what it was given."""
        for wrap in self.wraps:
            if wrap.holder.is_attribute and wrap.holder.text == f"self.{node.attr}":
                return State.WRAPPED
        found = State.NOTHING
        for where in self.training.program.files.values():
            for statement in where.statements:
                if (
                    isinstance(statement, ASSIGNMENTS)
                    and statement.value is not None
                    and any(
                        isinstance(target, ast.Attribute) and target.attr == node.attr
                        for target in assigned_to(statement)
                    )
                ):
                    found |= self.state(where, statement.value, depth - 1)
        return found


def _takes_the_model(file: ProgramFile, call: ast.Call) -> bool:
    return called_name(call) == "add_graph" or file.qualified(call.func) in _TAKE_THE_MODEL

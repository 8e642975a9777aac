"""Wrapped models: what is asked of one but belongs to the model inside, and torch.nn.DataParallel, which goes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Flag, auto

from torchferry.conversion.distributed.changes import FileChanges, ProgramChanges, UnclearProgramError
from torchferry.conversion.distributed.models import Holder
from torchferry.conversion.distributed.training import Training
from torchferry.conversion.distributed.wrapping import DDP, Wrap, given_anew
from torchferry.conversion.program.functions import ASSIGNMENTS, assigned_to, returned
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.training_program import (
    GivenValue,
    OriginFlow,
    TrainingProgram,
)
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.names import called_name
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
    "Asks the model inside DistributedDataParallel, so that checkpoints look as before",
    "访问 DistributedDataParallel 内部的模型，使检查点与之前一致",
)
_NOT_YET = Text("Model not wrapped yet", "模型尚未被包装")
_DEPTH = 8


class State(Flag):
    """What a variable may hold."""

    NOTHING = 0
    BARE = auto()
    WRAPPED = auto()


class Unwrapping:
    """Puts `.module` where a wrapped model is asked for what only the model has."""

    def __init__(
        self, training: Training, wraps: list[Wrap], changes: ProgramChanges, had_data_parallel: bool = False
    ) -> None:
        self.training = training
        self.had_data_parallel = had_data_parallel
        self.wraps = wraps
        self.changes = changes
        self.made = [origin for wrap in wraps for origin in wrap.holder.made]

    def rewrite(self) -> None:
        """Look at every attribute and argument of the program."""
        for file in self.training.program.files.values():
            for unit in file.module.scopes.units:
                for node in ast.walk(unit.node):
                    if isinstance(node, ast.Attribute) and node.attr not in _ANSWERED:
                        self._look_at(file, node.value)
                    elif isinstance(node, ast.Attribute) and node.attr == "module" and self.had_data_parallel:
                        # `model.module` of a DataParallel that is gone, where the model is not wrapped again yet.
                        value = node.value
                        is_model = isinstance(value, (ast.Name, ast.Attribute)) and self._is_model(
                            file, value
                        )
                        if is_model and self.state(file, value, _DEPTH) == State.BARE:
                            edit = Edit(file.module.end(value), file.module.end(node), "")
                            self.changes.of(file).replace(node, _NOT_YET, edit)
                    elif isinstance(node, ast.Call) and (
                        called_name(node) == "add_graph" or file.qualified(node.func) in _TAKE_THE_MODEL
                    ):
                        for argument in node.args:
                            self._look_at(file, argument)

    def _look_at(self, file: ProgramModule, node: ast.expr) -> None:
        if not isinstance(node, (ast.Name, ast.Attribute)) or not self._is_model(file, node):
            return
        state = self.state(file, node, _DEPTH)
        if not state & State.WRAPPED:
            return
        # The very variable that is wrapped, or any in the script itself.
        is_sure = file is self.training.program.main or self._state_of_holder(file, node) is not None
        if state == State.WRAPPED and is_sure:
            end = file.module.end(node)
            edit = Edit(end, end, ".module")
        else:  # other programs may hand their model to this function, too, and that is not wrapped
            text = file.module.segment(node)
            edit = file.module.replacement(node, f'getattr({text}, "module", {text})')
        self.changes.of(file).replace(node, _INSIDE, edit)

    def _is_model(self, file: ProgramModule, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "module":
            return False
        return self.training.flow.comes_from(file, node, *self.made)

    def state(self, file: ProgramModule, node: ast.expr, depth: int) -> State:
        """Whether the model is wrapped already where an expression is evaluated."""
        if not depth:
            return State.NOTHING
        found = self._state_of_holder(file, node)
        if found is not None:
            return found
        if isinstance(node, ast.Name):
            return self._of_values(self.training.flow.values_of(file, node), depth)
        if isinstance(node, ast.Attribute) and node.attr != "module":
            holders = [wrap.holder for wrap in self.wraps]
            if any(holder.is_attribute and holder.text == f"self.{node.attr}" for holder in holders):
                return State.WRAPPED
            return self._of_values(self.training.flow.values_of_attribute(node.attr), depth)
        called = self.training.flow.function_called(file, node)
        answered = State.NOTHING
        # What a function gives back, if that is a model at all; a tuple may hold one.
        for value in returned(called.node) if called else ():
            for part in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
                if called and self._is_model(called.file, part):
                    answered |= self.state(called.file, part, depth - 1)
        return answered or State.BARE

    def _state_of_holder(self, file: ProgramModule, node: ast.expr) -> State | None:
        """What is known of an expression that is the very variable that is wrapped."""
        wraps = (wrap for wrap in self.wraps if wrap.holder.file is file)
        fitting = (wrap for wrap in wraps if file.module.segment(node) == wrap.holder.text)
        states = (self._at_holder(file, node, wrap) for wrap in fitting)
        return next((state for state in states if state is not None), None)

    def _at_holder(self, file: ProgramModule, node: ast.expr, wrap: Wrap) -> State | None:
        """The holder itself: wrapped behind the wrap, and in every other function that sees it."""
        surroundings = file.surroundings(node)
        if surroundings is None:
            return None
        if surroundings.scope is wrap.holder.scope:
            if file.module.start(node) <= wrap.position:
                return State.BARE
            # Behind the wrap the variable may be given another model.
            state, statement = State.WRAPPED, surroundings.statement
            around = [file.module.tree, *file.tree.owners(statement)]
            for fresh in given_anew(wrap):
                if file.module.end(fresh) <= file.module.start(statement):
                    is_sure = file.tree.position(fresh).parent in around
                    state = State.BARE if is_sure else state | State.BARE
            return state
        if wrap.holder.is_attribute:
            owners = file.tree.owners(surroundings.statement)
            return State.WRAPPED if any(owner is wrap.holder.owner for owner in owners) else None
        is_seen = surroundings.scope.owner_of(wrap.holder.text) is wrap.holder.scope
        return State.WRAPPED if is_seen else None

    def _of_values(self, values: Iterable[GivenValue], depth: int) -> State:
        found = State.NOTHING
        for given in values:
            if not given.is_argument or self._is_model(given.file, given.value):
                found |= self.state(given.file, given.value, depth - 1)
        return found


# torch.nn.DataParallel, which one process per card takes the place of.

DATA_PARALLEL = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
_GONE = Text(
    "`DataParallel` replaced by DistributedDataParallel, one process per card",
    "`DataParallel` 改为每卡一个进程的 DistributedDataParallel",
)
_BATCH = Message(
    Text("Batch of each process is a whole one", "每个进程各取一整批"),
    why=Text("DataParallel shared the batch among the cards.", "DataParallel 下批量由所有卡分摊。"),
    do=Text(
        "To keep the total as it was, convert with `--batch split`.",
        "如需保持总批量，请使用 `--batch split` 转换。",
    ),
)
_CONSUME = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
_PREFIX = Message(
    Text("Checkpoints with and without the prefix `module.`", "带与不带前缀 `module.` 的检查点"),
    why=Text(
        "Names saved from DataParallel begin with `module.`; both kinds can be loaded.",
        "由 DataParallel 保存的名称以 `module.` 开头；两种检查点均可加载。",
    ),
)
_PREFIX_LEFT = Message(
    Text("Checkpoints with the prefix `module.`", "带前缀 `module.` 的检查点"),
    why=Text(
        "Names saved from DataParallel begin with `module.`.", "由 DataParallel 保存的名称以 `module.` 开头。"
    ),
    do=Text(
        "Remove the prefix before loading (`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present`).",
        "加载前请去掉该前缀（`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present`）。",
    ),
)
_TYPE = Text("Asks for the wrapper that the model has now", "改为判断模型现在所用的包装类型")
_UNCLEAR = Text(
    "this use of DataParallel is not understood; write `model = torch.nn.DataParallel(model)`, or wrap by hand",
    "无法理解此处 DataParallel 的用法；请写成 `model = torch.nn.DataParallel(model)`，或手动包装",
)


def remove_data_parallel(program: TrainingProgram, splits: bool, changes: ProgramChanges) -> bool:
    """Take DataParallel out of a program, if it has any; its models are wrapped anew by the pass."""
    is_found = False
    for file in program.files.values():
        if b"DataParallel" not in file.module.data:
            continue
        for call in file.calls:
            if file.qualified(call.func) in DATA_PARALLEL:
                is_found = True
                _remove(file, call, changes.of(file))
                if not splits:
                    changes.of(file).remark(Kind.INFO, call, _BATCH)
            elif called_name(call) == "isinstance":
                for node in ast.walk(call.args[1]) if len(call.args) > 1 else ():
                    if isinstance(node, (ast.Name, ast.Attribute)) and file.qualified(node) in DATA_PARALLEL:
                        name = changes.of(file).name_of(DDP, "DistributedDataParallel")
                        changes.of(file).replace(node, _TYPE, file.module.replacement(node, name))
    return is_found


def accept_old_checkpoints(flow: OriginFlow, holders: list[Holder], changes: ProgramChanges) -> None:
    """Names that begin with `module.`, as DataParallel saved them, lose that before a model is given them."""
    made = [origin for holder in holders for origin in holder.made]
    for file, call in flow.program.calls:
        if not (call.args and isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"):
            continue
        if not flow.comes_from(file, call.func.value, *made):
            continue
        state = call.args[0]
        if isinstance(state, (ast.Name, ast.Attribute, ast.Subscript)):
            name = changes.of(file).name_of(_CONSUME, "consume_prefix_in_state_dict_if_present")
            line = f'{name}({file.module.segment(state)}, "module.")'
            changes.of(file).before(file.statement_of(call), [line], _PREFIX, call)
        else:
            changes.of(file).remark(Kind.TODO, call, _PREFIX_LEFT)


def _remove(file: ProgramModule, call: ast.Call, changes: FileChanges) -> None:
    model = next((item.value for item in call.keywords if item.arg == "module"), None)
    model = call.args[0] if call.args else model
    if model is None:
        raise UnclearProgramError(file, call, _UNCLEAR)
    statement = file.statement_of(call)
    text = file.module.segment(model)
    is_alone = isinstance(statement, ASSIGNMENTS) and statement.value is call
    if is_alone and [file.module.segment(target) for target in assigned_to(statement)] == [text]:
        # With it an `if` that held nothing else.
        place = file.tree.position(statement)
        while len(place.block) == 1 and isinstance(place.parent, ast.If) and not place.parent.orelse:
            owner = file.tree.position(place.parent).parent
            if isinstance(owner, ast.If) and place.parent in owner.orelse:
                break
            statement, place = place.parent, file.tree.position(place.parent)
        changes.delete(statement, _GONE)
    else:
        changes.replace(call, _GONE, file.module.replacement(call, text))

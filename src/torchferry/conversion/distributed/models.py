"""The models that a program trains: found through the optimizers, traced to the variable that holds each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.conversion.distributed.changes import UnclearProgramError
from torchferry.conversion.distributed.training import Training
from torchferry.conversion.program.functions import (
    ASSIGNMENTS,
    FUNCTIONS,
    assigned_to,
    returned,
    targets,
)
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.training_program import Origin, ProgramDefinition
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import BindingKind, Scope
from torchferry.text import Text

_OPTIMIZERS = frozenset(
    {"SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"}
    | {"LBFGS", "SparseAdam", "Adafactor", "LAMB", "Lamb", "LARS", "Lion", "Lookahead", "Muon"}
    | {"FusedAdam", "FusedSGD", "FusedLAMB", "BertAdam"}
)
_PARAMETERS = frozenset({"parameters", "named_parameters"})
MOVES = frozenset({"cuda", "to"})
_DEPTH = 6

_NO_OPTIMIZER = Text(
    "no optimizer is given MODEL.parameters(), so the trained model is unknown; name its variable with "
    "--model-name, or wrap it by hand in torch.nn.parallel.DistributedDataParallel after its move to the device",
    "没有优化器使用 MODEL.parameters()，无法确定所训练的模型；请用 --model-name 指定变量名，"
    "或在模型移至设备后手动用 torch.nn.parallel.DistributedDataParallel 包装",
)
_CONTAINER = Text(
    "the trained models are held in a container or come from a loop; hold each in its own variable",
    "所训练的模型保存在容器中或来自循环；请分别保存在各自的变量中",
)
_SEVERAL_CALLERS = Text(
    "several places hand over the model whose parameters are trained here; name its variable with --model-name",
    "多处传入此处训练的模型；请用 --model-name 指定其变量名",
)
_UNKNOWN = Text(
    "--model-name {name}: no variable of this name is given a value in the program",
    "--model-name {name}：程序中没有为该名称的变量赋值",
)


@dataclass(frozen=True)
class Holder:
    """The variable, or the attribute of an object, that holds a trained model."""

    file: ProgramModule
    text: str  # `net`, `self.model`
    scope: Scope  # of the statements that give it its value
    owner: ast.ClassDef | None  # the class, for an attribute
    made: tuple[Origin, ...]  # what makes the model

    @property
    def is_attribute(self) -> bool:
        return self.owner is not None


def find_models(training: Training, main: ProgramModule, wanted: str) -> list[Holder]:
    """The holder of each trained model, or of those that the user names, with commas between them."""
    finder = _ModelFinder(training)
    if wanted:
        return [finder.named(main, name.strip()) for name in wanted.split(",")]
    found: dict[tuple[str, int, str], Holder] = {}
    for file, call in training.program.calls:
        if is_optimizer(file, call):
            for holder in finder.holders(file, call):
                # The one that its model goes to before it is trained: through returns and to a move.
                for _ in range(_DEPTH):
                    further = _returned_to(training, holder) or _moved_elsewhere(training, holder)
                    if further is None:
                        break
                    holder = further
                found[holder.file.path, id(holder.scope), holder.text] = holder
    if not found:
        raise UnclearProgramError(main, main.module.tree.body[0], _NO_OPTIMIZER)
    return list(found.values())


def is_optimizer(file: ProgramModule, call: ast.Call) -> bool:
    """Whether a call makes an optimizer."""
    name = called_name(call)
    if name in _OPTIMIZERS:
        return True
    qualified = file.qualified(call.func)
    return qualified.startswith("torch.optim.") and "lr_scheduler" not in qualified and name[:1].isupper()


class _ModelFinder:
    def __init__(self, training: Training) -> None:
        self.training = training
        self.flow = training.flow

    def named(self, main: ProgramModule, name: str) -> Holder:
        """The holder that the user names."""
        for file in dict.fromkeys((main, *self.training.program.files.values())):
            for statement in file.statements:
                for target in assigned_to(statement):
                    if file.module.segment(target) in (name, f"self.{name}"):
                        return self.holder(file, target)
        raise UnclearProgramError(main, main.module.tree.body[0], _UNKNOWN.format(name=name))

    def holders(self, file: ProgramModule, optimizer: ast.Call) -> Iterator[Holder]:
        """The holders of the models whose parameters an optimizer is given."""
        given = [keyword.value for keyword in optimizer.keywords if keyword.arg == "params"]
        for argument in [*optimizer.args[:1], *given]:
            for where, base in self._bases(file, argument, _DEPTH):
                for there, root in self._roots(where, base):
                    yield self.holder(there, root)

    def _bases(
        self, file: ProgramModule, node: ast.expr, depth: int
    ) -> Iterator[tuple[ProgramModule, ast.expr]]:
        """MODEL of every MODEL.parameters() that an expression, or what its names stand for, holds."""
        for child in ast.walk(node):
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
                if child.func.attr in _PARAMETERS:
                    yield file, child.func.value
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load) and depth:
                # A variable that collects parameters: what it is assigned or handed.
                for given in self.flow.values_of(file, child):
                    is_moved_model = not given.is_argument and called_name(given.value) in MOVES
                    if given.place is None and not is_moved_model:
                        yield from self._bases(given.file, given.value, depth - 1)

    def _roots(self, file: ProgramModule, base: ast.expr) -> Iterator[tuple[ProgramModule, ast.expr]]:
        """Of `model.head` the model: the leftmost name that holds a module, or the attribute of `self`."""
        chain: list[ast.expr] = [base]
        while isinstance(chain[-1], ast.Attribute):
            chain.append(chain[-1].value)
        leftmost = chain[-1]
        if not isinstance(leftmost, ast.Name):
            raise UnclearProgramError(file, base, _CONTAINER)
        if leftmost.id == "self" and len(chain) == 1:
            # self.parameters() in a method of the model: MODEL of the MODEL.method() that runs it.
            for site in self.flow.calls_of(file.scope_at(leftmost).node):
                if isinstance(site.call.func, ast.Attribute):
                    yield from self._roots(site.file, site.call.func.value)
        else:
            is_inner = len(chain) > 1
            if is_inner and leftmost.id != "self":
                made = [self.flow.class_of(*origin) for origin in self.flow.origins(file, leftmost)]
                known = [item for item in made if item is not None]
                is_inner = bool(known) and not any(is_module_class(self.training, item) for item in known)
            yield file, chain[-2] if is_inner else leftmost

    def holder(self, file: ProgramModule, node: ast.expr, depth: int = _DEPTH) -> Holder:
        """The variable that is given the model, from a place that uses it: through parameters to their callers."""
        if isinstance(node, ast.Attribute):
            return self._of_attribute(file, node, depth)
        if not isinstance(node, ast.Name):
            raise UnclearProgramError(file, node, _CONTAINER)
        owner, bindings = file.bindings(node)
        others = [item.node for item in bindings if item.kind is BindingKind.OTHER]
        # `a, b = ...`: bound by an assignment, not by a loop.
        if owner is None or not all(
            isinstance(file.parent(file.parent(other) or other), ast.Assign) for other in others
        ):
            raise UnclearProgramError(file, node, _CONTAINER)
        is_parameter = any(item.kind is BindingKind.PARAMETER for item in bindings)
        if not is_parameter or is_moved(file, owner, node.id) or not depth:
            return Holder(file, node.id, owner, None, tuple(self.flow.origins(file, node)))
        return self._of_callers(file, node, owner, depth)

    def _of_callers(self, file: ProgramModule, node: ast.Name, owner: Scope, depth: int) -> Holder:
        found: dict[tuple[int, str], Holder] = {}
        for given in self.flow.arguments(owner.node, node.id) if isinstance(owner.node, FUNCTIONS) else ():
            if isinstance(given.value, (ast.Name, ast.Attribute)):
                holder = self.holder(given.file, given.value, depth - 1)
                found[id(holder.scope), holder.text] = holder
        if len(found) != 1:
            raise UnclearProgramError(file, node, _SEVERAL_CALLERS if found else _CONTAINER)
        return next(iter(found.values()))

    def _of_attribute(self, file: ProgramModule, node: ast.Attribute, depth: int) -> Holder:
        """`self.model`: the attribute itself if it is made or moved in the class, else what it was given."""
        if node.attr == "module":
            return self.holder(file, node.value, depth)
        for where in (file, *self.training.program.files.values()):
            for statement in where.statements:
                if not isinstance(statement, ASSIGNMENTS):
                    continue
                for target in assigned_to(statement):
                    if isinstance(target, ast.Attribute) and target.attr == node.attr:
                        if isinstance(target.value, ast.Name) and target.value.id == "self":
                            return self._of_assigned(where, target, statement, depth)
        raise UnclearProgramError(file, node, _CONTAINER)

    def _of_assigned(
        self, file: ProgramModule, target: ast.Attribute, statement: ast.Assign | ast.AnnAssign, depth: int
    ) -> Holder:
        assert statement.value is not None
        scope = file.scope_of_statement(statement)
        text = file.module.segment(target)
        value = statement.value
        if isinstance(value, ast.Name) and depth and not is_moved(file, scope, text):
            if any(item.kind is BindingKind.PARAMETER for item in scope.bindings.get(value.id, ())):
                return self._of_callers(file, value, scope, depth)
        return Holder(file, text, scope, _class_of(file, statement), tuple(self.flow.origins(file, value)))


def is_moved(file: ProgramModule, scope: Scope, text: str) -> bool:
    """Whether a variable is moved to a device in a scope: `text.cuda()`, or `text = SOMETHING.to(device)`."""
    for statement in getattr(scope.node, "body", ()):
        for node in ast.walk(statement):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            parent = file.parent(node)
            moved = [node.func.value, *(assigned_to(parent) if parent else ())]
            if node.func.attr in MOVES and text in map(file.module.segment, moved):
                return True
    return False


def _class_of(file: ProgramModule, statement: ast.stmt) -> ast.ClassDef | None:
    return next((item for item in file.tree.owners(statement) if isinstance(item, ast.ClassDef)), None)


def _returned_to(training: Training, holder: Holder) -> Holder | None:
    """The variable that gets the model from the function that builds it."""
    function = holder.scope.node
    if not isinstance(function, FUNCTIONS) or holder.is_attribute or training.trains(holder.file, function):
        return None
    nodes = (node for value in returned(function) for node in ast.walk(value))
    if not any(isinstance(node, ast.Name) and node.id == holder.text for node in nodes):
        return None
    for site in training.flow.calls_of(function):
        for target in targets(site.file.statement_of(site.call)):
            if training.flow.comes_from(site.file, target, *holder.made):
                return _ModelFinder(training).holder(site.file, target)
    return None


def _moved_elsewhere(training: Training, holder: Holder) -> Holder | None:
    """The one other variable in which the model is moved, if the holder itself is not."""
    if is_moved(holder.file, holder.scope, holder.text):
        return None
    for statement in holder.file.statements:
        is_here = holder.file.scope_of_statement(statement) is holder.scope
        if isinstance(statement, ASSIGNMENTS) and statement.value is not None and is_here:
            if any(holder.file.module.segment(target) == holder.text for target in targets(statement)):
                calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
                callees = filter(None, (training.flow.callee(holder.file, call) for call in calls))
                # A function that is called for the holder's value moves what it builds.
                if any(called_name(node) in MOVES for each in callees for node in ast.walk(each.node)):
                    return None
    found: dict[tuple[int, str], Holder] = {}
    for file, statement in training.program.statements:
        for target in targets(statement):
            if training.flow.comes_from(file, target, *holder.made):
                scope, text = file.scope_of_statement(statement), file.module.segment(target)
                if is_moved(file, scope, text):
                    owner = _class_of(file, statement) if isinstance(target, ast.Attribute) else None
                    found[id(scope), text] = Holder(file, text, scope, owner, holder.made)
    return next(iter(found.values())) if len(found) == 1 else None


def is_module_class(training: Training, made: ProgramDefinition, depth: int = 4) -> bool:
    """Whether a class of the program derives from torch.nn.Module, as far as that can be told."""
    if not isinstance(made.node, ast.ClassDef):
        return False
    for base in made.node.bases:
        above = training.program.definition(made.file, base)
        if above is None and (
            last_name(base).endswith("Module") or made.file.qualified(base).startswith("torch.nn.")
        ):
            return True
        if above is not None and depth and is_module_class(training, above, depth - 1):
            return True
    return False

"""Where a module trains: calls of backward, steps of optimizers, and the routines that hold them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from torchferry.conversion.amp.changes import UnclearStepError
from torchferry.conversion.program.blocks import StatementTree
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.module import (
    PassModule,
    Routine,
    called_method,
    calls_below,
    calls_in,
    last_name,
)
from torchferry.source.module import PythonModule
from torchferry.text import Text

_OPTIMIZER = re.compile(r"(?i)optim|^(.*_)?opt(_?(\w|\d+|gen|disc|dis))?$|^solver(_\w+)?$")
_NO_OPTIMIZER = re.compile(r"(?i)sched|^lr|prof|env|ema|warmup|simul|bar$|accelerat|_state$")
_LOSSES = re.compile(r"(?i)loss|err|cost|objective|out|result|energy|^[a-z]$")
_CREATES_GRAPH = Text(
    "gradients of gradients must not be taken from a scaled loss", "不能对缩放后的损失求二阶梯度"
)
_GRADIENT = Text("something else than a loss does the backward", "由损失之外的对象执行 backward")
_AUTOGRAD = Text(
    "torch.autograd.{name} is called beside the loss: give it scaler.scale(...) of what it differentiates, and divide "
    "the gradients by scaler.get_scale()",
    "另外调用了 torch.autograd.{name}：应对求导对象先做 scaler.scale(...)，所得梯度再除以 scaler.get_scale()",
)
_CLOSURE = Text(
    "GradScaler does not support optimizers that call a closure; autocast(dtype=torch.bfloat16) needs no scaler",
    "GradScaler 不支持使用闭包的优化器；autocast(dtype=torch.bfloat16) 无需 scaler",
)
_UNKNOWN_STEP = Text(
    "it is not clear whether this is the step of an optimizer", "不清楚这是否为优化器的 step"
)
_WRAPPED = Text(
    "{name} is a class of this project around an optimizer: give scaler.step the optimizer inside",
    "{name} 是本项目对优化器的封装：应把内部的优化器交给 scaler.step",
)
_APART = Text(
    "backward and the optimizer's step are in different functions", "backward 与优化器的 step 不在同一函数中"
)
_NO_STEP = Text("no step of an optimizer follows this backward", "此 backward 之后没有优化器的 step")
_DEPTH = 3  # functions that call functions
_VALUE = Text("the result of backward is used", "使用了 backward 的返回值")


@dataclass(frozen=True)
class Backward:
    """loss.backward()"""

    statement: ast.stmt
    call: ast.Call
    loss: ast.expr


@dataclass(frozen=True)
class Step:
    """optimizer.step(); `statement` is the loop where `for optimizer in optimizers` holds nothing else."""

    statement: ast.stmt
    call: ast.Call
    optimizer: ast.expr
    many: ast.expr | None = None  # what such a loop goes through

    @property
    def name(self) -> str:
        return ast.unparse(self.many or self.optimizer)


@dataclass
class TrainingSteps:
    """A function (or the statements of the module) with a whole training step, or with a part of one."""

    routine: Routine
    backwards: list[Backward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    # Statements that call a function of the module in which backward is called, and those functions.
    indirect: list[ast.stmt] = field(default_factory=list)
    helpers: list[TrainingSteps] = field(default_factory=list)
    problem: UnclearStepError | None = None

    @property
    def gradients(self) -> set[ast.stmt]:
        """The statements that add to gradients."""
        return {*(item.statement for item in self.backwards), *self.indirect}


class TrainingFinder:
    """Finds the training steps of a module; raises UnclearStepError where one can't be told."""

    def __init__(self, program: PassModule) -> None:
        self.program = program
        self.problems: list[UnclearStepError] = []  # functions that train, but not clearly

    def find(self) -> list[TrainingSteps]:
        """The functions that step an optimizer after a backward of their own, or of a function that they call."""
        if not any(word in self.program.module.data for word in (b"backward", b"step(")):
            return []
        parts = {routine: self._training(routine) for routine in self.program.routines}
        self._find_helpers(parts)
        whole = [item for item in parts.values() if item.steps and item.gradients]
        for item in whole:
            for part in (item, *item.helpers):
                if part.problem is not None:
                    raise part.problem
            for _, call in calls_below(item.routine):  # gradients that are taken beside the loss
                if _takes_gradients(call, item.routine, self.program, _DEPTH):
                    raise UnclearStepError(call, _AUTOGRAD.format(name="grad"))
            for statement in item.gradients:
                # A scaled gradient that no step of the scaler follows would never be unscaled.
                if all(self._is_elsewhere(statement, step.statement) for step in item.steps):
                    raise UnclearStepError(statement, _NO_STEP)
            for step in item.steps:
                self._check_class(step)
        if not whole:
            self._check_parts(list(parts.values()))
        return whole

    def _is_elsewhere(self, statement: ast.stmt, step: ast.stmt) -> bool:
        """Whether two statements are in different branches, of which only one runs."""
        tree = self.program.tree
        around = {node: child for child, node in _pairs(statement, tree)}
        for child, node in _pairs(step, tree):
            if node in around:
                return tree.position(child).block is not tree.position(around[node]).block
        return False

    def _check_parts(self, parts: list[TrainingSteps]) -> None:
        """No whole training step: is there one that this module does not show?"""
        backwards = [item for item in parts if item.backwards]
        if b".backward(" not in self.program.module.data:
            return  # an optimizer around another one
        for item in parts:
            if item.problem is not None and (item.steps or item.problem.is_certain):
                raise item.problem
        if backwards and any(item.steps for item in parts):
            raise UnclearStepError(backwards[0].backwards[0].call, _APART)

    def _find_helpers(self, parts: dict[Routine, TrainingSteps]) -> None:
        """Functions without a step that call backward, and functions that call those."""
        calls = [
            (statement, routine, self.program.definition(call.func, routine))
            for routine in parts
            for statement, call in calls_below(routine)
        ]
        known = {item.routine: item for item in parts.values() if item.backwards and not item.steps}
        while True:
            found = [
                (statement, parts[routine], known[function])
                for statement, routine, function in calls
                if function in known and statement not in parts[routine].indirect and function is not routine
            ]
            if not found:
                return
            for statement, caller, helper in found:
                caller.indirect.append(statement)
                if helper not in caller.helpers:
                    caller.helpers += [helper, *helper.helpers]
                if not caller.steps:
                    known[caller.routine] = caller

    def _training(self, routine: Routine) -> TrainingSteps:
        training = TrainingSteps(routine)
        unknown: list[ast.Call] = []
        for statement, call in calls_below(routine):
            if called_method(call) not in ("backward", "step"):
                continue
            try:
                if not self._take(call, statement, training):
                    unknown.append(call)
            except UnclearStepError as problem:
                training.problem = training.problem or problem
        unknown = [call for call in unknown if not _NO_OPTIMIZER.search(last_name(call.func.value))]  # type: ignore[attr-defined]
        if training.backwards and not training.steps and unknown:
            training.problem = UnclearStepError(unknown[0], _UNKNOWN_STEP, is_certain=True)
        return training

    def _take(self, call: ast.Call, statement: ast.stmt, training: TrainingSteps) -> bool:
        """Add a backward or a step; answers whether it is clear which of them a call is."""
        if called_method(call) == "backward":
            training.backwards += self._backward(call, statement, training.routine)
        elif self._is_optimizer(call.func.value):  # type: ignore[attr-defined]
            training.steps.append(self._step(call, statement))
        else:
            return bool(call.args or call.keywords)
        return True

    def _backward(self, call: ast.Call, statement: ast.stmt, routine: Routine) -> Iterator[Backward]:
        assert isinstance(call.func, ast.Attribute)
        loss = call.func.value
        qualified = self.program.qualified(loss, routine)
        if qualified == "torch.autograd":
            raise UnclearStepError(call, _AUTOGRAD.format(name="backward"))
        if qualified or ast.unparse(loss).startswith("super("):
            return  # a function of another module
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        graph = given.get("create_graph")
        if graph is not None and not (isinstance(graph, ast.Constant) and graph.value is False):
            raise UnclearStepError(call, _CREATES_GRAPH)
        if (call.args and not _LOSSES.search(last_name(loss))) or None in given:
            raise UnclearStepError(call, _GRADIENT)
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            raise UnclearStepError(call, _VALUE)
        yield Backward(statement, call, loss)

    def _step(self, call: ast.Call, statement: ast.stmt) -> Step:
        assert isinstance(call.func, ast.Attribute)
        if call.args or call.keywords:
            raise UnclearStepError(call, _CLOSURE, is_certain=True)
        optimizer = call.func.value
        parent = self.program.tree.position(statement).parent
        if (
            isinstance(parent, ast.For)
            and isinstance(optimizer, ast.Name)
            and ast.unparse(parent.target) == optimizer.id
        ):
            if any(called_method(item) == "backward" for inner in parent.body for item in calls_in(inner)):
                raise UnclearStepError(call, _UNKNOWN_STEP)
            return Step(parent, call, optimizer, parent.iter)
        return Step(statement, call, optimizer)

    def _is_optimizer(self, node: ast.expr) -> bool:
        name = last_name(node)
        if not name or _NO_OPTIMIZER.search(name):
            return False
        if _OPTIMIZER.search(name) or name in self._made_by_torch:
            return True
        return ast.unparse(node) in self._zeroed and name not in self._models

    def _owners(self, method: str) -> list[ast.expr]:
        calls = (call for _, call in self.program.statement_calls if called_method(call) == method)
        return [call.func.value for call in calls]  # type: ignore[attr-defined]

    @cached_property
    def _zeroed(self) -> set[str]:
        return set(map(ast.unparse, self._owners("zero_grad")))

    @cached_property
    def _models(self) -> set[str]:
        return set(map(last_name, self._owners("parameters"))) - {""}

    @cached_property
    def _made_by_torch(self) -> set[str]:
        found: set[str] = set()
        for statement in self.program.statements:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
                routine = self.program.routine_of(statement)
                qualified = self.program.qualified(statement.value.func, routine)
                if qualified.startswith("torch.optim.") and "lr_scheduler" not in qualified:
                    found.update(map(last_name, statement.targets))
        return found - {""}

    def _check_class(self, step: Step) -> None:
        """An own class around an optimizer has no parameter groups that a scaler could look at."""
        for statement, value in self.program.assignments(last_name(step.many or step.optimizer)):
            if not isinstance(value, ast.Call):
                continue
            routine = self.program.routine_of(statement)
            found = self.program.definition(value.func, routine)
            if isinstance(found, ast.ClassDef) and not any(
                "optim" in ast.unparse(base).lower() or ast.unparse(base) in _TORCH_OPTIMIZERS
                for base in found.bases
            ):
                raise UnclearStepError(step.call, _WRAPPED.format(name=found.name))


def _takes_gradients(call: ast.Call, routine: Routine, program: PassModule, depth: int) -> bool:
    """torch.autograd.grad(...), or a function of the project that calls it."""
    if program.qualified(call.func, routine) == "torch.autograd.grad":
        return True
    found = program.callee(call.func, routine) if depth else None
    if found is None or not isinstance(found.node, FUNCTIONS) or found.node is routine:
        return False
    node, is_here = found.node, found.node in program.scopes
    if not is_here and b"autograd" not in found.file.module.data:
        return False
    other = program if is_here else PassModule(found.file)
    return any(_takes_gradients(inner, node, other, depth - 1) for _, inner in calls_below(node))


_TORCH_OPTIMIZERS = frozenset({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam"})


def _pairs(statement: ast.stmt, tree: StatementTree) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Each compound statement around a statement, with the part of it through which the way leads."""
    child = statement
    for node in tree.upwards(statement):
        yield child, node
        child = node


# Mixed precision that a module has already, in whatever form.

_NAMES = frozenset(
    {"autocast", "GradScaler", "scale_loss", "AmpOptimWrapper", "NativeScaler", "FP16_Optimizer"}
    | {"NativeScalerWithGradNormCount", "FP16Optimizer", "Accelerator", "manual_backward", "MixedPrecision"}
    | {"network_to_half"}
)
_PACKAGES = frozenset(
    {"accelerate", "deepspeed", "lightning", "pytorch_lightning", "mmengine", "mmcv", "colossalai", "bmtrain"}
    | {"lightning_fabric", "composer", "fairseq", "detectron2", "catalyst", "ignite"}
)
_CASTS = frozenset({"half", "bfloat16"})
_HALVES = frozenset({"half", "float16", "bfloat16"})
_WORDS = tuple(word.encode() for word in (*_NAMES, *_PACKAGES, *_CASTS, *_HALVES, "apex"))


def existing_precision(module: PythonModule) -> ast.AST | None:
    """The first place that shows mixed precision, or a library that brings its own."""
    if not any(word in module.data for word in _WORDS):
        return None
    found = [node for node in ast.walk(module.tree) if _shows(node)]
    return min(found, key=lambda node: node.lineno, default=None)  # type: ignore[attr-defined]


def _shows(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _NAMES
    if isinstance(node, ast.Name):
        return node.id in _NAMES
    if isinstance(node, ast.Import):
        names = {alias.name for alias in node.names}
        return any(name.partition(".")[0] in _PACKAGES or name.startswith("apex.amp") for name in names)
    if isinstance(node, ast.ImportFrom):
        package = (node.module or "").partition(".")[0] if not node.level else ""
        names = {alias.name for alias in node.names}
        return package in _PACKAGES or not names.isdisjoint(_NAMES) or (package == "apex" and "amp" in names)
    return isinstance(node, ast.Call) and _casts(node)


def _casts(call: ast.Call) -> bool:
    """model.half(), x.to(torch.bfloat16), from_pretrained(name, torch_dtype=torch.float16)"""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _CASTS:
        return not call.args
    given = [*call.args, *(item.value for item in call.keywords)] if method == "to" else []
    given += [item.value for item in call.keywords if item.arg == "torch_dtype"]
    return any(isinstance(value, ast.Attribute) and value.attr in _HALVES for value in given)

"""Where a module trains: calls of backward, steps of optimizers, and the routines that hold them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from torchferry.convert.amp.program import Program, Routine, calls_in, last_name, method_of, text_of
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.blocks import LOOPS, statements_below
from torchferry.text import Text

_OPTIMIZER = re.compile(r"(?i)optim|^(.*_)?opt(_?(\w|\d+|gen|disc|dis))?$|^solver(_\w+)?$")
_NO_OPTIMIZER = re.compile(r"(?i)sched|^lr|prof|env|ema|warmup|simul|bar$|accelerat|_state$")
_CREATES_GRAPH = Text(
    "gradients of gradients must not be taken from a scaled loss",
    "不能对缩放后的损失求二阶梯度",
)
_GRADIENT = Text("backward gets a gradient of its own", "backward 带有自己的梯度参数")
_AUTOGRAD = Text(
    "torch.autograd.{name} is called beside the loss: its result must be divided by scaler.get_scale()",
    "另外调用了 torch.autograd.{name}：其结果须除以 scaler.get_scale()",
)
_CLOSURE = Text(
    "GradScaler does not support optimizers that call a closure", "GradScaler 不支持使用闭包的优化器"
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
        return text_of(self.many or self.optimizer)


@dataclass
class Training:
    """A function (or the statements of the module) with a whole training step."""

    routine: Routine
    backwards: list[Backward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


class TrainingFinder:
    """Finds the training steps of a module; raises UnclearError where one can't be told."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def find(self) -> list[Training]:
        found = [self._training(routine) for routine in self.program.routines]
        whole = [item for item in found if item.backwards and item.steps]
        if any(item.steps for item in found):
            for item in found:
                if item.backwards and not item.steps:
                    raise UnclearError(item.backwards[0].call, _APART)
        for item in whole:
            for step in item.steps:
                self._check_class(step)
        return whole

    def _training(self, routine: Routine) -> Training:
        training = Training(routine)
        unknown: list[ast.Call] = []
        for statement in statements_below(routine):
            for call in calls_in(statement):
                name = method_of(call)
                if name == "backward":
                    training.backwards += self._backward(call, statement, routine)
                elif name == "step" and self._is_optimizer(call.func.value):  # type: ignore[attr-defined]
                    training.steps.append(self._step(call, statement))
                elif name == "step" and not call.args and not call.keywords:
                    unknown.append(call)
        if training.backwards:
            self._check_autograd(routine)
            if unknown and not training.steps and not all(map(_is_no_optimizer, unknown)):
                raise UnclearError(unknown[0], _UNKNOWN_STEP)
        return training

    def _backward(self, call: ast.Call, statement: ast.stmt, routine: Routine) -> Iterator[Backward]:
        assert isinstance(call.func, ast.Attribute)
        loss = call.func.value
        if text_of(loss).startswith("super("):
            return
        if self.program.qualified(loss, routine) == "torch.autograd":
            raise UnclearError(call, _AUTOGRAD.format(name="backward"))
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        graph = given.get("create_graph")
        if graph is not None and not (isinstance(graph, ast.Constant) and graph.value is False):
            raise UnclearError(call, _CREATES_GRAPH)
        if call.args or "gradient" in given or None in given:
            raise UnclearError(call, _GRADIENT)
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            raise UnclearError(call, _VALUE)
        yield Backward(statement, call, loss)

    def _check_autograd(self, routine: Routine) -> None:
        for statement in statements_below(routine):
            for call in calls_in(statement):
                if self.program.qualified(call.func, routine) == "torch.autograd.grad":
                    raise UnclearError(call, _AUTOGRAD.format(name="grad"))

    def _step(self, call: ast.Call, statement: ast.stmt) -> Step:
        assert isinstance(call.func, ast.Attribute)
        if call.args or call.keywords:
            raise UnclearError(call, _CLOSURE)
        optimizer = call.func.value
        parent = self.program.tree.position(statement).parent
        if (
            isinstance(parent, LOOPS)
            and isinstance(parent, ast.For)
            and isinstance(optimizer, ast.Name)
            and text_of(parent.target) == optimizer.id
        ):
            if any(method_of(item) == "backward" for inner in parent.body for item in calls_in(inner)):
                raise UnclearError(call, _UNKNOWN_STEP)
            return Step(parent, call, optimizer, parent.iter)
        return Step(statement, call, optimizer)

    def _is_optimizer(self, node: ast.expr) -> bool:
        name = last_name(node)
        if not name or _NO_OPTIMIZER.search(name):
            return False
        if _OPTIMIZER.search(name) or name in self._made_by_torch:
            return True
        return text_of(node) in self._zeroed and name not in self._models

    @cached_property
    def _calls(self) -> list[ast.Call]:
        return [call for statement in self.program.statements for call in calls_in(statement)]

    @cached_property
    def _zeroed(self) -> set[str]:
        """What zero_grad() is called on."""
        return {text_of(call.func.value) for call in self._calls if _is_method(call, "zero_grad")}  # type: ignore[attr-defined]

    @cached_property
    def _models(self) -> set[str]:
        """Names of what has parameters."""
        found = {last_name(call.func.value) for call in self._calls if _is_method(call, "parameters")}  # type: ignore[attr-defined]
        return found - {""}

    @cached_property
    def _made_by_torch(self) -> set[str]:
        """Names of variables that hold an optimizer of torch."""
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
                "optim" in text_of(base).lower() or text_of(base) in _TORCH_OPTIMIZERS for base in found.bases
            ):
                raise UnclearError(step.call, _WRAPPED.format(name=found.name))


_TORCH_OPTIMIZERS = frozenset({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam"})


def _is_method(call: ast.Call, name: str) -> bool:
    return method_of(call) == name


def _is_no_optimizer(call: ast.Call) -> bool:
    return bool(_NO_OPTIMIZER.search(last_name(call.func.value)))  # type: ignore[attr-defined]

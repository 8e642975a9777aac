"""TF701 (opt-in): models with convolutions and their images in channels_last, the layout that some vendors want."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from torchferry.convert.program import Program, Routine, calls_in, last_name, method_of, text_of
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import FileContext
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule
from torchferry.source.scopes import BindingKind
from torchferry.text import Text

_ADDED = Text(
    "puts it in channels_last, so that convolutions need no copy", "转为 channels_last，避免卷积时拷贝"
)
_NOT_WANTED = Text(
    "{company} does not ask for channels_last: {format}", "{company} 并不需要 channels_last：{format}"
)
_NO_CONVOLUTION = Text(
    "left as it is: channels_last is for convolutions of images, and this model shows none",
    "保持原样：channels_last 用于图像卷积，而该模型未见此类卷积",
)
_MODELS = re.compile(r"(?i)^(model|net|network|backbone)$")
_IMAGES = re.compile(r"(?i)^(images?|imgs?)$")
_LABELS = re.compile(r"(?i)label|target|mask|^y$|index|idx|len|token|text|caption")
_TWO_DIMENSIONS = re.compile(rb"(?i)conv(transpose)?_?2d")
# Models that take something else than a batch of images, or make one of it.
_OTHER_INPUTS = re.compile(rb"(?i)conv(transpose)?_?3d|\.unsqueeze\(|\[None|Embedding\(")


class _Layout:
    """What of a module goes into channels_last."""

    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.program = Program(context)
        self.module = context.module

    def proposals(self, torch: str) -> Iterator[Proposal]:
        suffix = f".to(memory_format={torch}.channels_last)"
        for statement in self.program.statements:
            for target, call in _moves(statement):
                routine = self.program.routine_of(statement)
                if target in self._done or method_of(call) not in ("cuda", "to") or _is_cast(call):
                    continue
                if self._is_model(target, call):
                    yield from self._model(target, call, routine, suffix)
                elif self._is_image(target, call, routine):
                    yield self._change(call, suffix)

    def _model(self, target: str, call: ast.Call, routine: Routine, suffix: str) -> Iterator[Proposal]:
        if self._convolves(target, call) is False:
            yield self.context.propose(Kind.INFO, call, _NO_CONVOLUTION)
            return
        yield self._change(call, suffix)
        vendor = self.context.target.vendor
        if not vendor.channels_last and vendor.memory_format:
            message = _NOT_WANTED.format(company=vendor.company, format=vendor.memory_format)
            yield self.context.propose(Kind.RISK, call, message)

    def _change(self, call: ast.Call, suffix: str) -> Proposal:
        end = self.module.end(call)
        return self.context.propose(Kind.CHANGE, call, _ADDED, Edit(end, end, suffix))

    @cached_property
    def _done(self) -> set[str]:
        """Variables that a script puts into channels_last itself."""
        found: set[str] = set()
        for statement in self.program.statements:
            if any(_names_format(call) for call in calls_in(statement)):
                found.update(target for target, _ in _moves(statement))
        return found

    @cached_property
    def _with_parameters(self) -> set[str]:
        """Variables that have parameters, and so are models."""
        return {
            text_of(call.func.value)  # type: ignore[attr-defined]
            for statement in self.program.statements
            for call in calls_in(statement)
            if method_of(call) in ("parameters", "named_parameters")
        }

    def _is_model(self, target: str, call: ast.Call) -> bool:
        name = target.rpartition(".")[2]
        return bool(_MODELS.match(name)) or (
            target in self._with_parameters and self._convolves(target, call) is True
        )

    def _convolves(self, target: str, call: ast.Call) -> bool | None:
        """Whether a model has convolutions of images; None when its class is not in sight."""
        values = [value for _, value in self.program.assignments(target.rpartition(".")[2])]
        for value in [call, *values]:
            for made in ast.walk(value):
                if isinstance(made, ast.Call):
                    answer = self._makes_convolutions(made)
                    if answer is not None:
                        return answer
        return None

    def _makes_convolutions(self, call: ast.Call) -> bool | None:
        root = self.module.tree
        if self.program.qualified(call.func, root).startswith("torch.nn."):
            return _TWO_DIMENSIONS.search(self.module.segment(call).encode("utf-8")) is not None
        source = self._source_of(call)
        return None if source is None else _TWO_DIMENSIONS.search(source) is not None

    def _source_of(self, call: ast.Call) -> bytes | None:
        """The module that defines the class which is called."""
        root = self.module.tree
        if isinstance(call.func, ast.Name):
            binding = self.module.binding_of(call.func.id, self.program.scopes[root], call.lineno)
            if binding is not None and isinstance(binding.node, ast.ClassDef):
                return self.module.data
        qualified = self.program.qualified(call.func, root)
        found = self.context.neighbours.find(self.context.path, qualified) if qualified else None
        return found.module.data if found and isinstance(found.binding.node, ast.ClassDef) else None

    def _is_image(self, target: str, call: ast.Call, routine: Routine) -> bool:
        name = target.rpartition(".")[2]
        if _IMAGES.match(name):
            return True
        return not _LABELS.search(name) and any(
            self._feeds(target, other, call)
            for statement in self._around(routine)
            for other in calls_in(statement)
        )

    def _around(self, routine: Routine) -> list[ast.stmt]:
        return [item for item in self.program.statements if self.program.routine_of(item) is routine]

    def _feeds(self, target: str, other: ast.Call, call: ast.Call) -> bool:
        """model(data), where the model is known to convolve images and to take them as they are."""
        if not other.args or text_of(other.args[0]) != target:
            return False
        model = text_of(other.func)
        if not _MODELS.match(last_name(other.func)) and model not in self._with_parameters:
            return False
        if self._convolves(model, other) is not True:
            return False
        sources = [self.module.data, *self._neighbours_of(model)]
        return not any(_OTHER_INPUTS.search(source) for source in sources)

    def _neighbours_of(self, model: str) -> Iterator[bytes]:
        for _, value in self.program.assignments(model.rpartition(".")[2]):
            for made in ast.walk(value):
                source = self._source_of(made) if isinstance(made, ast.Call) else None
                if source is not None:
                    yield source


def _moves(statement: ast.stmt) -> Iterator[tuple[str, ast.Call]]:
    """The variables that a statement moves, with the last call of each move."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute):
            yield text_of(call.func.value), call
    if not isinstance(statement, ast.Assign):
        return
    target, value = statement.targets[0], statement.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    for one, moved in pairs:
        if isinstance(moved, ast.Call) and isinstance(one, (ast.Name, ast.Attribute)):
            yield text_of(one), moved


def _names_format(call: ast.Call) -> bool:
    return any(keyword.arg == "memory_format" for keyword in call.keywords)


def _is_cast(call: ast.Call) -> bool:
    """x.to(torch.float16), x.to(memory_format=...)"""
    if _names_format(call):
        return True
    first = text_of(call.args[0]) if call.args else ""
    return method_of(call) == "to" and (not (call.args or call.keywords) or first.startswith("torch.float"))


def _torch_name(module: PythonModule) -> str:
    for name, bindings in module.scopes.root.bindings.items():
        if any(binding.kind is BindingKind.IMPORT and binding.qualified == "torch" for binding in bindings):
            return name
    return ""


def _restructure(context: FileContext) -> Iterator[Proposal]:
    torch = _torch_name(context.module)
    if torch:
        yield from _Layout(context).proposals(torch)


RULE = register(
    Rule(
        id="TF701",
        name="channels-last",
        summary=Text("models and images in channels_last (NHWC)", "模型与图像使用 channels_last（NHWC）"),
        triggers=("cuda", ".to("),
        option="channels_last",
        restructure=_restructure,
    )
)

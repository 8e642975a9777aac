"""What autocast makes of calls: which compute under it, which only prepare data, and which it refuses."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cached_property

from torchferry.conversion.program.blocks import DEFINITIONS, heads_of, statements_below
from torchferry.conversion.program.definitions import ProjectDefinition
from torchferry.conversion.program.functions import FUNCTIONS, assigned_to, positional
from torchferry.conversion.program.module import (
    PassModule,
    Routine,
    called_method,
    calls_below,
    calls_in,
    last_name,
)
from torchferry.conversion.rule import Proposal
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule
from torchferry.source.scopes import BindingKind
from torchferry.text import Text

_NAMES = re.compile(r"(?i)loss|criteri|(^|_)(forward|model|net|network)($|_)")
_MODELS = re.compile(r"(?i)(^|_)(model|net|network|encoder|decoder|generator|discriminator)($|_)|^net[A-Z]$")
_MAKES = re.compile(
    r"(?i)^_?(make|build|create|load|init|prepare|define|setup|set|save|parse|config|read|plot|show|log|print|write"
    r"|update|register|get(?!.*loss))(_|$)"
)
_PREPARES = re.compile(
    r"(?i)^(transforms?|aug\w*|tokeni[sz]er?|collate\w*|preprocess\w*|normali[sz]e\w*|to_device|device|next\w*"
    r"|get_batch|iter|Variable|logger|log|print\w*|timer|pbar|progress\w*|parser|time|perf_counter)$"
)
_FACTORIES = re.compile(
    r"^torch\.(\w+_like|zeros|ones|full|empty|rand|randn|randint|randperm|normal|arange|linspace|eye|tensor"
    r"|as_tensor|from_numpy|cat|stack|device|manual_seed|save|load|no_grad|enable_grad|set_grad_enabled|isnan"
    r"|isfinite|is_tensor|Tensor|\w+Tensor|Generator|(utils|cuda|backends|distributed|optim|autograd|amp|nn\.utils)\..*)$"
)
# Methods of a model that don't compute.
_BOOKKEEPING = re.compile(
    r"^(parameters|named_parameters|train|eval|zero_grad|to|cuda|cpu|state_dict|step|load_state_dict"
    r"|modules|named_modules|children|requires_grad_|apply|buffers|float|backward|append|update|item"
    r"|size|detach|data_ptr|format|write|info|debug)$"
)
_LOSSES = re.compile(r"(?i)loss|criteri")
# Methods of tensors, of collections and of numbers, which have arguments and run no model.
_OF_TENSORS = re.compile(
    r"^(view|reshape|permute|transpose|unsqueeze|squeeze|expand|repeat|flatten|gather|sum|mean|type"
    r"|index_select|masked_fill|masked_select|pow|clamp|add|mul|sub|div|scatter|scatter_|copy_|fill_"
    r"|split|chunk|get|pop|keys|items|values|max|min|argmax|norm|std|var|eq|matmul|mm|bmm|new_tensor"
    r"|new_zeros|numpy|tolist|astype|sample|next|extend|index|count|join|strip|lower)$"
)
_DEPTH = 4  # functions that call functions


class Computing:
    """Answers for the calls of one module."""

    def __init__(self, program: PassModule) -> None:
        self.program = program
        self._functions: dict[ast.AST, bool] = {}

    def in_statement(self, statement: ast.stmt, routine: Routine) -> bool:
        """Whether a statement computes anywhere, its blocks included."""
        inner = [statement, *statements_below(statement)]
        return any(self.in_heads(item, routine) for item in inner)

    def in_heads(self, statement: ast.stmt, routine: Routine) -> bool:
        return any(self.in_expression(head, routine) for head in heads_of(statement))

    def in_expression(self, expression: ast.AST, routine: Routine) -> bool:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and self.is_computing(node, routine):
                return True
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                return True
        return False

    def is_computing(self, call: ast.Call, routine: Routine, depth: int = _DEPTH) -> bool:
        """Whether a call runs a model, a loss, or operators of torch."""
        function = call.func
        if isinstance(function, (ast.Call, ast.Subscript)):
            return True  # nn.CrossEntropyLoss()(output, target), models[0](x)
        name = last_name(function)
        if _PREPARES.match(name) or not name:
            return False
        qualified = self.program.qualified(function, routine)
        if qualified.startswith("torch."):
            # nn.Linear(...) makes a layer; nn.functional.linear(...) and torch.matmul(...) compute.
            is_class = name[:1].isupper()
            return not is_class and not _FACTORIES.match(qualified)
        found = self.program.definition(function, routine)
        if isinstance(found, FUNCTIONS):
            return _computes_by_name(name) or self._function_computes(found, depth)
        if found is not None:
            return False  # makes an object
        if qualified:
            return _computes_by_name(name) and not name[:1].isupper()
        return self._object_computes(function, routine)

    def _object_computes(self, function: ast.expr, routine: Routine) -> bool:
        """A variable, parameter or attribute that is called, or a method of a model."""
        if isinstance(function, ast.Name):
            binding = self.program.module.binding_of(
                function.id, self.program.scopes[routine], function.lineno
            )
            if binding is None:  # from a star import
                return not hasattr(builtins, function.id) and function.id[:1].islower()
            return binding.kind is not BindingKind.DEFINITION
        if not isinstance(function, ast.Attribute) or _BOOKKEEPING.match(function.attr):
            return False
        owner = function.value
        if isinstance(owner, ast.Name) and owner.id == "self":
            return True
        name = last_name(owner)
        return name in self._models or bool(
            _MODELS.search(name) or (_computes_by_name(function.attr) and name)
        )

    def runs_model(self, call: ast.Call, routine: Routine) -> bool:
        """Whether a call runs a model, or a function that may, rather than a loss or operators of torch."""
        if not self.is_computing(call, routine) or _LOSSES.search(last_name(call.func)):
            return False
        return not self.program.qualified(call.func, routine).startswith("torch.")

    def may_run_model(self, call: ast.Call, routine: Routine) -> bool:
        """Whether a call is of a method with arguments of an object of which nothing is known."""
        function = call.func
        if not isinstance(function, ast.Attribute) or not (call.args or call.keywords):
            return False
        if any(pattern.match(function.attr) for pattern in (_BOOKKEEPING, _OF_TENSORS, _PREPARES)):
            return False
        return bool(last_name(function.value)) and not self.program.qualified(function, routine)

    @cached_property
    def _models(self) -> frozenset[str]:
        """Names of variables and attributes that have parameters, or are put into training mode, or are a Module."""
        found: set[str] = set()
        for _, call in self.program.statement_calls:
            if called_method(call) in ("parameters", "named_parameters", "train", "eval"):
                found.update(_names_in_chain(call.func.value))  # type: ignore[attr-defined]
        for statement in self.program.statements:
            if isinstance(statement, ast.Assign) and self._makes_module(statement):
                found.update(map(last_name, statement.targets))
        return frozenset(found - {"", "self", "torch"})

    def _makes_module(self, statement: ast.Assign) -> bool:
        """self.policy = ActorCritic(...).to(device), where that is a class of the project for a model"""
        value: ast.expr = statement.value
        while isinstance(value, ast.Call) and _BOOKKEEPING.match(called_method(value)):
            value = value.func.value  # type: ignore[attr-defined]
        if not isinstance(value, ast.Call):
            return False
        made = self.program.definition(value.func, self.program.routine_of(statement))
        return isinstance(made, ast.ClassDef) and any(last_name(base) == "Module" for base in made.bases)

    def _function_computes(self, function: ast.AST, depth: int) -> bool:
        if function not in self._functions:
            self._functions[function] = False  # a function that calls itself
            if depth > 0 and function in self.program.scopes and isinstance(function, FUNCTIONS):
                calls = (call for _, call in calls_below(function))
                self._functions[function] = any(
                    self.is_computing(call, function, depth - 1) for call in calls
                )
        return self._functions[function]


def _computes_by_name(name: str) -> bool:
    return bool(_NAMES.search(name)) and not _MAKES.match(name)


def _names_in_chain(node: ast.AST) -> set[str]:
    """`policy` and `actor` of self.policy.actor"""
    found: set[str] = set()
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        found.add(last_name(node))
        node = node.value
    return {*found, last_name(node)}


# Losses that autocast refuses: binary cross entropy of probabilities, whose logarithms need float32.

_FUNCTIONS = frozenset({"torch.nn.functional.binary_cross_entropy", "torch.binary_cross_entropy"})
_CLASSES = frozenset({"torch.nn.BCELoss", "torch.nn.modules.loss.BCELoss", "torch.nn.modules.BCELoss"})
_WORD = b"BCELoss"
_PASSES = 3  # variables that are handed on to functions that hand them on
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


Parameter = tuple[ast.AST, str]  # a function, and its name in it


class UnsafeLosses:
    """Knows the calls of a module that autocast refuses; `is_alone` looks at no other module of the project."""

    def __init__(self, program: PassModule, is_alone: bool = False) -> None:
        self.program = program
        self._neighbours = program.context.neighbours
        self._is_alone = is_alone
        self._others: dict[str, UnsafeLosses | None] = {}  # of other modules, by path
        self._names: set[str] = set()  # of variables and attributes that hold such a loss
        self._parameters: set[Parameter] = set()  # of functions that are given one
        self._followed: set[ast.AST] = set()  # where such a loss is made, and it is known what becomes of it
        if _WORD in program.module.data:
            for statement in self.program.statements:
                targets = assigned_to(statement)
                if targets:
                    made = list(self._made(statement.value, self.program.routine_of(statement)))  # type: ignore[attr-defined]
                    if made and all(isinstance(target, (ast.Name, ast.Attribute)) for target in targets):
                        self._followed.update(made)
                        self._names.update(filter(None, map(last_name, targets)))
        if not is_alone and self._neighbours.any_text(_WORD):
            # What other modules of the project give to the functions and classes of this one.
            path = self.program.context.path
            for definition in self.program.module.tree.body:
                if not isinstance(definition, DEFINITIONS):
                    continue
                for item in self._neighbours.importers(path, definition.name):
                    module = self._neighbours.module(item.path)
                    other = self._other(item.path) if module is not None and _WORD in module.data else None
                    if other is not None:
                        self._parameters.update(other._hands_to(path, definition))
        if self._names or self._parameters or _WORD in program.module.data:
            for _ in range(_PASSES):
                self._find_parameters()

    def calls(self, statement: ast.stmt, routine: Routine) -> list[ast.Call]:
        """The refused calls of a statement, without those of its blocks."""
        return [call for call in calls_in(statement) if self.is_refused(call, routine)]

    def is_refused(self, call: ast.Call, routine: Routine) -> bool:
        function = call.func
        if isinstance(function, ast.Call):
            return self.program.qualified(function.func, routine) in _CLASSES
        qualified = self.program.qualified(function, routine)
        return (
            qualified in _FUNCTIONS
            or self._holds(function, routine)
            or (not qualified.startswith("torch.") and self._is_imported(function, routine))
        )

    def lost(self) -> Iterator[ast.expr]:
        """Where such a loss is made, and it is not clear who calls it: in a table, by a function that returns it."""
        if _WORD not in self.program.module.data:
            return
        for statement in self.program.statements:
            routine = self.program.routine_of(statement)
            for call in calls_in(statement):
                if isinstance(call.func, ast.Call):
                    self._followed.add(call.func.func)
                if last_name(call.func) in ("isinstance", "issubclass"):
                    self._followed.update(ast.walk(call))
            for node in _values(statement):
                if isinstance(node, (ast.Name, ast.Attribute)) and node not in self._followed:
                    if self.program.qualified(node, routine) in _CLASSES:
                        yield node

    def _holds(self, node: ast.expr, routine: Routine) -> bool:
        name = last_name(node)
        if isinstance(node, ast.Name) and (routine, name) in self._parameters:
            return True
        if isinstance(node, ast.Name) and routine in self.program.scopes:
            scope = self.program.scopes[routine].owner_of(name)
            if scope is not None and isinstance(scope.node, FUNCTIONS) and name in positional(scope.node):
                return (scope.node, name) in self._parameters
        return isinstance(node, (ast.Name, ast.Attribute)) and name in self._names

    def _is_imported(self, function: ast.expr, routine: Routine) -> bool:
        """from losses import criterion"""
        found = None if self._is_alone else self.program.imported_name(function, routine)
        if found is None or found.definition.attributes or _WORD not in found.file.module.data:
            return False
        other = self._other(found.file.path)
        return other is not None and found.definition.name in other._names

    def _other(self, path: str) -> UnsafeLosses | None:
        if path not in self._others:
            context = self.program.context.beside(path)
            self._others[path] = UnsafeLosses(PassModule(context), is_alone=True) if context else None
        return self._others[path]

    def _made(self, value: ast.expr, routine: Routine) -> Iterator[ast.expr]:
        """The class, where an expression is a new loss: nn.BCELoss().cuda(), nn.BCELoss() if sigmoid else nn.L1Loss()"""
        if isinstance(value, ast.IfExp):
            yield from self._made(value.body, routine)
            yield from self._made(value.orelse, routine)
        elif isinstance(value, ast.Call) and self.program.qualified(value.func, routine) in _CLASSES:
            yield value.func
        elif isinstance(value, ast.Call) and called_method(value):
            yield from self._made(value.func.value, routine)  # type: ignore[attr-defined]

    def _find_parameters(self) -> None:
        """train(model, criterion): what the function calls `criterion` is what its callers hand over."""
        for statement, call in self.program.statement_calls:
            routine = self.program.routine_of(statement)
            callee = self.program.callee(call.func, routine)
            for parameter, value in self._given(call, callee) if callee else ():
                made = list(self._made(value, routine))
                if made or (isinstance(value, (ast.Name, ast.Attribute)) and self._holds(value, routine)):
                    self._followed.update(made)
                    self._parameters.add(parameter)
        for statement in self.program.statements:  # self.criterion = criterion
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
                if (self.program.routine_of(statement), statement.value.id) in self._parameters:
                    self._names.update(filter(None, map(last_name, statement.targets)))

    def _hands_to(
        self, path: str, definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> Iterator[Parameter]:
        """The parameters of another module's function that this one gives such a loss to."""
        for statement, call in self.program.statement_calls:
            routine = self.program.routine_of(statement)
            callee = self.program.callee(call.func, routine)
            if callee is None or callee.file.path != path or callee.node is not definition:
                continue
            for parameter, value in self._given(call, callee):
                is_held = isinstance(value, (ast.Name, ast.Attribute)) and self._holds(value, routine)
                if is_held or any(True for _ in self._made(value, routine)):
                    yield parameter

    def _given(
        self, call: ast.Call, callee: ProjectDefinition[FileContext]
    ) -> Iterator[tuple[Parameter, ast.expr]]:
        """The arguments of a call, each with the parameter that it is for."""
        called = self.program.lookup.runs(callee)
        if called is not None and isinstance(called.node, FUNCTIONS):
            names = positional(called.node)[max(0, called.given) :]
            yield from (((called.node, name), value) for name, value in zip(names, call.args, strict=False))
            yield from (((called.node, item.arg), item.value) for item in call.keywords if item.arg)


def _values(statement: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(statement, FUNCTIONS):
        return
    skipped = statement.annotation if isinstance(statement, ast.AnnAssign) else None
    for head in heads_of(statement):
        if head is not skipped:
            yield from ast.walk(head)


def tensors_of(call: ast.Call) -> list[ast.expr]:
    """The two tensors that a refused loss compares: what was predicted, and the target."""
    named = [keyword.value for keyword in call.keywords if keyword.arg in ("input", "target")]
    return [*(item for item in call.args[:2] if not isinstance(item, ast.Starred)), *named][:2]


def as_float(module: PythonModule, node: ast.expr) -> Iterator[Edit]:
    """Edits that make an expression float32."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "float":
        return
    opening, closing = ("", "") if isinstance(node, _SIMPLE) else ("(", ")")
    yield from module.insertions_around(node, opening, f"{closing}.float()")


# Masks filled with numbers that half precision does not hold: PyTorch raises when the filled tensor is in it.

WORDS = (b"masked_fill", b"fill_diagonal_")
_FILLS = frozenset(word.decode() + end for word in WORDS for end in ("", "_"))
_LARGEST = 65504.0  # of float16
_TOO_LARGE = Message(
    Text("Value beyond the range of half precision", "超出半精度范围的值"),
    why=Text(
        "Half precision ends at 65504; under autocast this raises an error if the tensor is in half "
        "precision.",
        "半精度最大为 65504；若该张量在 autocast 下为半精度，此处会报错。",
    ),
    do=Text(
        "Fill with `torch.finfo(x.dtype).min` of the tensor `x`, which fits every dtype.",
        "请使用张量 `x` 的 `torch.finfo(x.dtype).min`，它适合任何 dtype。",
    ),
)


def overflowing(program: PassModule) -> Iterator[Proposal]:
    """A todo for each such mask of a module."""
    if not any(word in program.module.data for word in WORDS):
        return
    for _, call in program.statement_calls:
        if last_name(call.func) in _FILLS:
            values = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(_LARGEST < abs(_number(value, program)) < float("inf") for value in values):
                yield program.context.propose(Kind.TODO, call, _TOO_LARGE)


def _number(node: ast.expr, program: PassModule) -> float:
    """The number that an expression is, or that a variable is once and for all; 0 if that is not known."""
    if isinstance(node, ast.Name):
        values = [value for _, value in program.assignments(node.id)]
        return _number(values[0], program) if len(values) == 1 and not isinstance(values[0], ast.Name) else 0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, program)
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else 0  # type: ignore[attr-defined]

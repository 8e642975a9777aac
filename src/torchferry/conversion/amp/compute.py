"""Which calls compute with a model or a loss, and so belong under autocast, and which only prepare data."""

from __future__ import annotations

import ast
import builtins
import re
from functools import cached_property

from torchferry.conversion.program.blocks import heads_of, statements_below
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.module import PassModule, Routine, called_method, calls_in, last_name
from torchferry.source.scopes import BindingKind

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
        for statement in self.program.statements:
            for call in calls_in(statement):
                if called_method(call) in ("parameters", "named_parameters", "train", "eval"):
                    found.update(_names_in_chain(call.func.value))  # type: ignore[attr-defined]
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
            is_own = function in self.program.scopes and isinstance(function, FUNCTIONS)
            self._functions[function] = (
                depth > 0
                and is_own
                and any(
                    self.is_computing(call, function, depth - 1)  # type: ignore[arg-type]
                    for statement in statements_below(function)
                    for call in calls_in(statement)
                )
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

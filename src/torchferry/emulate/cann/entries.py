"""Makes the C++ of the operator functions from their tables, when the emulated toolkit is built.

`interfaces.tsv` has the C interface of each function, `limits.tsv` the dtypes and numbers of dimensions that it takes of
its tensors; `operators/*.ops` say what the functions compute, in a small part of Python's syntax:

    def aclnnAdds(self, other, alpha, out):
        out[:] = add.Scalar(self, other, alpha)

A call is one of an operator of ATen's with its overload, of a function of `csrc/operators/builtins*.h`, or of another
`def` of the tables that is no operator function (a helper: it may `return`). `out[:] = x` writes into the memory of the
tensor `out`, or of a list of tensors; a plain `=` names a value. `if`, `for ... in`, with `zip`, comparisons, `and`,
`or`, `not`, arithmetic on numbers, `x[0]`, `None`, lists of numbers and tensors are there; nothing else is. An argument
with an annotation (`query: tensor`) gives the C interface of a function that `interfaces.tsv` lacks.

A function that is written in C++ says so there: `OPERATOR(aclnnName)`. `def old_Name(inputs, outputs, attribute, ...)`
is an operator that the plugin calls the old way, by its name: with lists of tensors, and attributes by their names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.errors import BuildError
from torchferry.text import Text

FOLDER = Path(__file__).parent
SOURCES = FOLDER / "csrc" / "operators"
TABLES = FOLDER / "operators"
INTERFACES = FOLDER / "interfaces.tsv"
LIMITS = FOLDER / "limits.tsv"
_ANY = "*"


@dataclass(frozen=True)
class ArgumentLimit:
    """What a function takes of one of its arguments."""

    argument: str
    dtypes: tuple[str, ...]  # as CANN's messages name them, without DT_; () for any
    dims: tuple[int, int] | None  # at least, at most; None for any number

    def __str__(self) -> str:
        dims = _ANY if self.dims is None else f"{self.dims[0]}-{self.dims[1]}"
        return f"{self.argument}:{','.join(self.dtypes) or _ANY}:{dims}"


def _rows(text: str) -> Iterator[tuple[str, list[str]]]:
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition("\t")
            yield name, words.split()


def read_limits(text: str) -> dict[str, tuple[ArgumentLimit, ...]]:
    """Function -> limits of its arguments; what has none may have anything."""
    return {function: tuple(map(_limit, limits)) for function, limits in _rows(text)}


def write_limits(limits: Mapping[str, Iterable[ArgumentLimit]]) -> str:
    """The text of a table of limits."""
    return "".join(f"{function}\t{' '.join(map(str, of))}\n" for function, of in sorted(limits.items()))


def _limit(text: str) -> ArgumentLimit:
    argument, dtypes, dims = text.split(":")
    least, _, most = dims.partition("-")
    return ArgumentLimit(
        argument,
        () if dtypes == _ANY else tuple(dtypes.split(",")),
        None if dims == _ANY else (int(least), int(most)),
    )


# Kinds of arguments -> their types in C.
_C_TYPES = {
    "tensor": "const aclTensor*",
    "tensors": "const aclTensorList*",
    "scalar": "const aclScalar*",
    "scalars": "const aclScalarList*",
    "ints": "const aclIntArray*",
    "bools": "const aclBoolArray*",
    "floats": "const aclFloatArray*",
    "text": "const char*",
    "dtype": "int32_t",
    "bool": "bool",
    "int8_t": "int8_t",
    "int32_t": "int32_t",
    "int64_t": "int64_t",
    "uint64_t": "uint64_t",
    "float": "float",
    "double": "double",
}
# Kinds of arguments -> how their values become ATen's; of all others: value().
_VALUES = {
    "dtype": "value_of_dtype({})",
    "bool": "IValue({})",
    **dict.fromkeys(("int8_t", "int32_t", "int64_t", "uint64_t"), "IValue(static_cast<int64_t>({}))"),
    **dict.fromkeys(("float", "double"), "IValue(static_cast<double>({}))"),
}
_IN_CPP = re.compile(r"^OPERATOR\((aclnn\w+)\)", re.MULTILINE)
_BUILTIN = re.compile(r"^IValue (\w+)\(", re.MULTILINE)
_OPERATIONS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "f"}
_COMPARISONS = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "l", ast.GtE: "g", ast.Eq: "=", ast.NotEq: "!"}
_HEAD = """// Made by entries.py: change the tables instead.
#include "argument_limits.h"
#include "builtins.h"
#include "named_operators.h"
#include "script.h"

namespace builtins = cann::builtins;
using namespace cann::script;
using cann::Arguments;
using cann::Aten;
using cann::Function;
using cann::IValue;
using cann::launch;
using cann::Limit;
using cann::plan;
using cann::refuses;
using cann::value;
using cann::value_of_dtype;

"""


@dataclass(frozen=True)
class FunctionArgument:
    """An argument of an operator function."""

    name: str
    kind: str


Interface = tuple[FunctionArgument, ...]
Limits = tuple[ArgumentLimit, ...]


def read_interfaces(text: str) -> dict[str, Interface]:
    """The arguments of each function, by its name."""
    return {
        name: tuple(FunctionArgument(*word.split(":")) for word in arguments)
        for name, arguments in _rows(text)
    }


def write_entries(folder: Path) -> list[Path]:
    """The sources, in a folder: one for each table, and one for the functions that are written in C++."""
    interfaces = read_interfaces(INTERFACES.read_text("utf-8"))
    limits = read_limits(LIMITS.read_text("utf-8"))
    headers = (header.read_text("utf-8") for header in SOURCES.glob("builtins*.h"))
    builtins = frozenset(name for header in headers for name in _BUILTIN.findall(header))
    trees = {table: _parsed(table) for table in sorted(TABLES.glob("*.ops"))}
    definitions = [definition for tree in trees.values() for definition in _definitions(tree)]
    helpers = frozenset(each.name for each in definitions if not _is_function(each))
    written = []
    for table, tree in trees.items():
        target = folder / f"entries_{table.stem}.cpp"
        target.write_text(_TableWriter(table, interfaces, limits, builtins, helpers).source(tree), "utf-8")
        written.append(target)
    native = folder / "entries_native.cpp"
    names = _names_in_cpp()
    lacking = [name for name in names if name not in interfaces]
    if lacking:
        raise BuildError(
            Text(f"interfaces.tsv lacks {', '.join(lacking)}", f"interfaces.tsv 缺少 {', '.join(lacking)}")
        )
    declared = [f"void compute_{name}(Arguments& a);\n" for name in names]
    entries = [_entry(name, interfaces[name], limits.get(name, ()), f"compute_{name}") for name in names]
    native.write_text("".join([_HEAD, *declared, *entries]), "utf-8")
    return [*written, native]


def implemented() -> frozenset[str]:
    """The names of all operator functions that compute something."""
    tables = (_parsed(table) for table in TABLES.glob("*.ops"))
    in_tables = {one.name for tree in tables for one in _definitions(tree) if _is_function(one)}
    return frozenset(in_tables | set(_names_in_cpp()))


def implemented_interfaces() -> dict[str, Interface]:
    """The arguments of these, except for those that the tables themselves declare."""
    known = read_interfaces(INTERFACES.read_text("utf-8"))
    return {name: known[name] for name in sorted(implemented()) if name in known}


def _names_in_cpp() -> list[str]:
    sources = sorted(SOURCES.glob("*.cpp"))
    return [name for source in sources for name in _IN_CPP.findall(source.read_text("utf-8"))]


def _parsed(table: Path) -> ast.Module:
    try:
        return ast.parse(table.read_text("utf-8"), str(table))
    except SyntaxError as error:
        raise BuildError(
            Text(f"{table.name}:{error.lineno}: {error.msg}", f"{table.name}:{error.lineno}: {error.msg}")
        ) from None


def _definitions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _is_function(definition: ast.FunctionDef) -> bool:
    return definition.name.startswith("acl")


def _entry(name: str, interface: Interface, limits: Limits, compute: str) -> str:
    parameters = [f"{_C_TYPES[one.kind]} a{i}" for i, one in enumerate(interface)]
    values = ", ".join(_VALUES.get(one.kind, "value({})").format(f"a{i}") for i, one in enumerate(interface))
    head = ", ".join([*parameters, "uint64_t* workspace_bytes", "void** executor"])
    draws = "true" if any(one.name.startswith("seed") for one in interface) else "false"
    return (
        f'\nstatic Function function_{name}("{name}", {compute}, {draws});\n'
        f"{_limit_table(name, limits)}"
        f'extern "C" int {name}GetWorkspaceSize({head}) {{\n'
        f"{_refusal(name, interface, limits)}"
        f"  return plan(function_{name}, {{{values}}}, workspace_bytes, executor);\n}}\n"
        f'extern "C" int {name}(void*, uint64_t, void* executor, void* stream) {{\n'
        f"  return launch(executor, stream);\n}}\n"
    )


def _limit_table(name: str, limits: Limits) -> str:
    rows = ""
    for limit in limits:
        bits = " | ".join(f"cann::dtypes::{dtype}" for dtype in limit.dtypes) or "cann::dtypes::ANY"
        least, most = limit.dims or (0, "cann::kAnyDims")
        rows += f'    {{"{limit.argument}", {bits}, {least}, {most}}},\n'
    return f"static constexpr Limit limits_{name}[] = {{\n{rows}}};\n" if rows else ""


def _refusal(name: str, interface: Interface, limits: Limits) -> str:
    """An argument that is refused is told at the call, as the toolkit tells it: before anything is put on a stream."""
    places = {argument.name: i for i, argument in enumerate(interface)}
    checks = [f"refuses(limits_{name}[{i}], a{places[limit.argument]})" for i, limit in enumerate(limits)]
    return f"  if ({' || '.join(checks)}) {{\n    return cann::kInvalidParameter;\n  }}\n" if checks else ""


@dataclass
class _Body:
    """What is known while a function is written."""

    parameters: tuple[str, ...]
    locals: set[str] = field(default_factory=set)
    operators: dict[tuple[str, str], str] = field(default_factory=dict)  # name and overload -> variable
    temporaries: int = 0


class _TableWriter:
    def __init__(
        self,
        table: Path,
        interfaces: Mapping[str, Interface],
        limits: Mapping[str, Limits],
        builtins: frozenset[str],
        helpers: frozenset[str],
    ) -> None:
        self._table = table
        self._interfaces = interfaces
        self._limits = limits
        self._builtins = builtins
        self._helpers = helpers
        self._body = _Body(())

    def source(self, tree: ast.Module) -> str:
        parts = [_HEAD, *(f"IValue helper_{name}(Arguments a);\n" for name in sorted(self._helpers)), "\n"]
        for definition in tree.body:
            if not isinstance(definition, ast.FunctionDef):
                raise self._wrong(definition, "only functions stand in a table")
            parts.append(self._function(definition) if _is_function(definition) else self._helper(definition))
        return "".join(parts)

    def _wrong(self, node: ast.stmt | ast.expr, what: str) -> BuildError:
        return BuildError(
            Text(f"{self._table.name}:{node.lineno}: {what}", f"{self._table.name}:{node.lineno}: {what}")
        )

    def _interface(self, definition: ast.FunctionDef) -> Interface:
        given = definition.args.args
        annotated = [one for one in given if isinstance(one.annotation, ast.Name)]
        if annotated:
            kinds = [one.annotation.id if isinstance(one.annotation, ast.Name) else "" for one in given]
            if not set(kinds) <= set(_C_TYPES):
                raise self._wrong(definition, f"{definition.name}: an argument is of no kind that there is")
            return tuple(FunctionArgument(one.arg, kind) for one, kind in zip(given, kinds, strict=True))
        known = self._interfaces.get(definition.name)
        if known is None:
            raise self._wrong(definition, f"interfaces.tsv lacks {definition.name}; annotate its arguments")
        if len(known) != len(given):
            names = ", ".join(one.name for one in known)
            raise self._wrong(definition, f"{definition.name} has {len(known)} arguments: {names}")
        return known

    def _function(self, definition: ast.FunctionDef) -> str:
        name, interface = definition.name, self._interface(definition)
        entry = _entry(name, interface, self._limits.get(name, ()), f"compute_{name}")
        return f"\nstatic void compute_{name}(Arguments& a) {{\n{self._written(definition)}}}\n{entry}"

    def _helper(self, definition: ast.FunctionDef) -> str:
        text = f"\nIValue helper_{definition.name}(Arguments a) {{\n{self._written(definition)}  return IValue();\n}}\n"
        if not definition.name.startswith("old_"):
            return text
        name = definition.name.removeprefix("old_")
        attributes = ", ".join(f'"{one.arg}"' for one in definition.args.args[2:])
        return (
            f"{text}\nstatic void named_{name}(Arguments& a) {{\n  helper_{definition.name}(a);\n}}\n"
            f'static cann::NamedOperator known_{name}("{name}", named_{name}, {{{attributes}}});\n'
        )

    def _written(self, definition: ast.FunctionDef) -> str:
        self._body = _Body(tuple(one.arg for one in definition.args.args))
        lines = [line for statement in definition.body for line in self._statement(statement, 1)]
        operators = [
            f'  static const Aten {variable}("aten::{name}", "{overload}");\n'
            for (name, overload), variable in self._body.operators.items()
        ]
        return "".join(["  (void)a;\n", *operators, *lines])

    def _statement(self, node: ast.stmt, depth: int) -> Iterator[str]:
        indent = "  " * depth
        if isinstance(node, ast.Expr):
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                return  # a docstring
            yield f"{indent}{self._expression(node.value)};\n"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from self._assignment(node.targets[0], self._expression(node.value), indent)
        elif isinstance(node, ast.If):
            yield from self._condition(node, depth)
        elif isinstance(node, ast.For):
            yield from self._loop(node, depth)
        elif isinstance(node, ast.Return):
            yield f"{indent}return {self._expression(node.value) if node.value else ''};\n"
        elif not isinstance(node, ast.Pass):
            raise self._wrong(node, f"no {type(node).__name__} in a table")

    def _assignment(self, target: ast.expr, value: str, indent: str) -> Iterator[str]:
        if isinstance(target, ast.Name):
            if target.id in self._body.parameters:
                raise self._wrong(target, f"write {target.id}[:] = ... to fill a tensor")
            known = target.id in self._body.locals
            self._body.locals.add(target.id)
            yield f"{indent}{'' if known else 'IValue '}v_{target.id} = {value};\n"
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            yield f"{indent}write({self._expression(target.value)}, {value});\n"
        elif isinstance(target, ast.Tuple):
            temporary = self._temporary()
            yield f"{indent}const IValue {temporary} = {value};\n"
            for i, part in enumerate(target.elts):
                if not (isinstance(part, ast.Name) and part.id == "_"):
                    yield from self._assignment(part, f"item({temporary}, {i})", indent)
        else:
            raise self._wrong(target, "nothing can be assigned to this")

    def _temporary(self) -> str:
        self._body.temporaries += 1
        return f"t{self._body.temporaries}"

    def _condition(self, node: ast.If, depth: int) -> Iterator[str]:
        indent = "  " * depth
        # Names that are given in a branch are there behind it.
        stored = [
            inner.id
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id != "_"
        ]
        for name in dict.fromkeys(stored):
            if name not in self._body.locals and name not in self._body.parameters:
                self._body.locals.add(name)
                yield f"{indent}IValue v_{name};\n"
        yield f"{indent}if ({self._truth(node.test)}) {{\n"
        for statement in node.body:
            yield from self._statement(statement, depth + 1)
        if node.orelse:
            yield f"{indent}}} else {{\n"
            for statement in node.orelse:
                yield from self._statement(statement, depth + 1)
        yield f"{indent}}}\n"

    def _loop(self, node: ast.For, depth: int) -> Iterator[str]:
        indent = "  " * depth
        if isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "zip":
            lists, targets = node.iter.args, getattr(node.target, "elts", [])
        else:
            lists, targets = [node.iter], [node.target]
        if len(lists) != len(targets) or not all(isinstance(target, ast.Name) for target in targets):
            raise self._wrong(node, "a loop names what it takes from each list")
        index = self._temporary()
        names = [self._temporary() for _ in lists]
        for name, one in zip(names, lists, strict=True):
            yield f"{indent}const IValue {name} = {self._expression(one)};\n"
        yield f"{indent}for (int64_t {index} = 0; {index} < length({names[0]}); ++{index}) {{\n"
        before = set(self._body.locals)
        for name, target in zip(names, targets, strict=True):
            self._body.locals.add(target.id)
            yield f"{indent}  IValue v_{target.id} = item({name}, {index});\n"
        for statement in node.body:
            yield from self._statement(statement, depth + 1)
        self._body.locals = before
        yield f"{indent}}}\n"

    def _expression(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            if node.id in self._body.parameters:
                return f"a[{self._body.parameters.index(node.id)}]"
            if node.id in self._body.locals:
                return f"v_{node.id}"
            raise self._wrong(node, f"nothing is called {node.id}")
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.List):
            return f"listed({{{', '.join(map(self._expression, node.elts))}}})"
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            left, right = self._expression(node.left), self._expression(node.right)
            return f"arithmetic('{_OPERATIONS[type(node.op)]}', {left}, {right})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"arithmetic('-', IValue(int64_t{{0}}), {self._expression(node.operand)})"
        if isinstance(node, ast.IfExp):
            return f"({self._truth(node.test)} ? {self._expression(node.body)} : {self._expression(node.orelse)})"
        if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
            return f"IValue({self._truth(node)})"
        raise self._wrong(node, f"no {type(node).__name__} in a table")

    def _constant(self, node: ast.Constant) -> str:
        value = node.value
        if value is None:
            return "IValue()"
        if isinstance(value, bool):
            return f"IValue({'true' if value else 'false'})"
        if isinstance(value, int):
            return f"IValue(int64_t{{{value}}})"
        if isinstance(value, float):
            return f"IValue({value!r})"
        if isinstance(value, str):
            return f'IValue(std::string("{value}"))'
        raise self._wrong(node, "this constant means nothing here")

    def _item(self, node: ast.Subscript) -> str:
        index = node.slice
        if isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant):
            return f"item({self._expression(node.value)}, -{index.operand.value!r})"
        if isinstance(index, ast.Constant):
            return f"item({self._expression(node.value)}, {index.value!r})"
        return f"item({self._expression(node.value)}, {self._expression(index)}.toInt())"

    def _call(self, node: ast.Call) -> str:
        called = node.func
        if isinstance(called, ast.Name):
            name, overload = called.id, ""
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            name, overload = called.value.id, called.attr
        else:
            raise self._wrong(called, "what is called is a name, or a name and an overload")
        positional = [self._expression(argument) for argument in node.args]
        if not overload and name in self._helpers | self._builtins and node.keywords:
            raise self._wrong(node, f"{name} takes no keywords")
        if not overload and name in self._helpers:
            return f"helper_{name}({{{', '.join(positional)}}})"
        if not overload and name in self._builtins:
            return f"builtins::{name}({', '.join(positional)})"
        variable = self._body.operators.setdefault(
            (name, overload), f"{name}_{overload}" if overload else f"{name}_"
        )
        named = ", ".join(f'{{"{one.arg}", {self._expression(one.value)}}}' for one in node.keywords)
        return f"{variable}({{{', '.join(positional)}}}{f', {{{named}}}' if named else ''})"

    def _truth(self, node: ast.expr) -> str:
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return f"({sign.join(map(self._truth, node.values))})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self._truth(node.operand)}"
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        return f"truth({self._expression(node)})"

    def _comparison(self, node: ast.Compare) -> str:
        if len(node.ops) != 1:
            raise self._wrong(node, "one comparison at a time")
        operation, right = node.ops[0], node.comparators[0]
        left = self._expression(node.left)
        if isinstance(operation, (ast.Is, ast.IsNot)):
            return f"{'!' if isinstance(operation, ast.IsNot) else ''}{left}.isNone()"
        if type(operation) not in _COMPARISONS:
            raise self._wrong(node, "compare with == != < > <= >=, or with None by `is`")
        sign = _COMPARISONS[type(operation)]
        if sign == "!":
            return f"!compare('=', {left}, {self._expression(right)})"
        return f"compare('{sign}', {left}, {self._expression(right)})"

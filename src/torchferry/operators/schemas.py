"""The arguments of PyTorch's operators: enough to tell overloads apart by what they were called with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

SHIPPED_SCHEMAS = Path(__file__).parent / "schemas.tsv"

_FUNC = re.compile(r"^- func: ([\w.]+)\((.*)\) -> (.*)$", re.MULTILINE)
_READ_ONLY_ALIAS = re.compile(r"\([a-z*]+\)")  # Tensor(a): a view; Tensor(a!): written to


class ArgumentKind(str, Enum):
    """What an argument can be, as far as a profiler tells."""

    TENSOR = "T"
    TENSORS = "A"
    SCALAR = "S"  # numbers, booleans, and what PyTorch hands on as a number: dtypes, layouts, memory formats
    SCALARS = "L"
    LIST = "G"  # of tensors or numbers: only recorded, in no schema
    OTHER = "O"  # text, devices, generators, names of dimensions
    NOTHING = "N"  # only recorded: None, or a value that was not recorded

    def fits(self, wanted: ArgumentKind) -> bool:
        """Whether an argument that was recorded as this can be one of the wanted kind."""
        if self is ArgumentKind.LIST:
            return wanted in (ArgumentKind.TENSORS, ArgumentKind.SCALARS, ArgumentKind.OTHER)
        return self is wanted or self is ArgumentKind.NOTHING


_SCALARS = ("Scalar", "int", "SymInt", "float", "bool", "ScalarType", "Layout", "MemoryFormat")


@dataclass(frozen=True)
class Schema:
    """One overload."""

    name: str  # add.Tensor
    arguments: tuple[str, ...]
    kinds: tuple[ArgumentKind, ...]
    is_view: bool  # its result shares the memory of an argument

    @property
    def writes_to_given(self) -> bool:
        """Whether it is the out= form of another overload."""
        overload = self.name.partition(".")[2]
        return "out" in overload.split("_") or overload in ("grad_input", "output")


def read_schemas(text: str) -> list[Schema]:
    """Every operator overload of PyTorch's list."""
    return [_schema(*found.groups()) for found in _FUNC.finditer(text)]


def write_schemas(schemas: Iterable[Schema], path: Path) -> None:
    """Write the table: a line per overload, its fields divided by tabs."""
    lines = (
        "\t".join(
            (
                schema.name,
                "".join(kind.value for kind in schema.kinds),
                ",".join(schema.arguments),
                "view" if schema.is_view else "",
            )
        )
        for schema in sorted(schemas, key=lambda schema: schema.name)
    )
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


@cache
def schemas() -> Mapping[str, tuple[Schema, ...]]:
    """The overloads of each operator, by its name without `aten::` and overload."""
    found: dict[str, list[Schema]] = {}
    for line in SHIPPED_SCHEMAS.read_text("utf-8").splitlines():
        name, kinds, arguments, view = line.split("\t")
        schema = Schema(
            name,
            tuple(arguments.split(",")) if arguments else (),
            tuple(map(ArgumentKind, kinds)),
            bool(view),
        )
        found.setdefault(name.partition(".")[0], []).append(schema)
    return {name: tuple(overloads) for name, overloads in found.items()}


def choose_overload(name: str, recorded: Sequence[ArgumentKind] | None) -> Schema | None:
    """The one overload of an operator (without `aten::`) that fits what was recorded; None if that is not clear.

    Without a record of the arguments it is clear only if there is one overload, out= forms aside.
    """
    fitting = [schema for schema in schemas().get(name, ()) if recorded is None or _fits(recorded, schema)]
    if len(fitting) > 1:
        fitting = [schema for schema in fitting if not schema.writes_to_given]
    return fitting[0] if len(fitting) == 1 else None


def _fits(recorded: Sequence[ArgumentKind], schema: Schema) -> bool:
    if len(recorded) != len(schema.kinds):
        return False
    return all(kind.fits(wanted) for kind, wanted in zip(recorded, schema.kinds, strict=True))


def _schema(name: str, arguments: str, returns: str) -> Schema:
    described = [part.rpartition(" ") for part in _divide(arguments) if part != "*"]
    return Schema(
        name=name,
        arguments=tuple(word.partition("=")[0] for _, _, word in described),
        kinds=tuple(_kind(type_) for type_, _, _ in described),
        is_view=_READ_ONLY_ALIAS.search(returns) is not None,
    )


def _divide(arguments: str) -> list[str]:
    """At the commas between arguments, not at those of a default such as `[0, 1]`."""
    return re.split(r", (?![^\[\]]*\])", arguments) if arguments else []


def _kind(type_: str) -> ArgumentKind:
    plain = re.sub(r"\(.*?\)", "", type_).replace("?", "")
    base, _, is_list = plain.partition("[")
    if base == "Tensor":
        return ArgumentKind.TENSORS if is_list else ArgumentKind.TENSOR
    if base in _SCALARS:
        return ArgumentKind.SCALARS if is_list else ArgumentKind.SCALAR
    return ArgumentKind.OTHER

"""What PyTorch's own operator list (`native_functions.yaml`) says of each operator: who computes it, whether its arguments
may lie on several devices, and its arguments, enough to tell overloads apart by what they were called with.

Read once at build time, kept as small tables beside the library.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path

from torchferry.errors import BuildError
from torchferry.text import Text

TABLE = "operators.tsv"
LIST_IN_TORCHGEN = Path("packaged", "ATen", "native", "native_functions.yaml")

# What PyTorch registers for an operator that names neither kernels nor a delegate, and for a generated one.
_DEFAULT_KERNEL = "CompositeImplicitAutograd"
_GENERATED_KERNEL = "CompositeExplicitAutograd"
# An operator given as the inner loop over elements gets kernels made for these.
_INNER_LOOP_KERNELS = ("CPU", "CUDA")

_FUNC = re.compile(r"- func: ([\w.]+)\(")
_FIELD = re.compile(r"  (\w+):(?: (.*))?$")
_KERNEL = re.compile(r"    (\w+(?:, *\w+)*):")


class DeviceCheck(str, Enum):
    """Whether PyTorch asks the tensors of a call to lie on one device before the kernel runs."""

    SAME = ""
    NONE = "nocheck"
    ITERATOR = "iterator"  # left to TensorIterator, which lets a CPU scalar join


@dataclass(frozen=True)
class OperatorFacts:
    """One overload of an ATen operator."""

    name: str  # add.Tensor
    structured: bool  # its shape is worked out by a meta function that all kernels share
    structured_delegate: str  # the structured overload that computes this one; "" if there is none
    device_check: DeviceCheck
    kernels: tuple[str, ...]  # dispatch keys: CPU, CUDA, CompositeExplicitAutograd, ...
    generated: bool  # PyTorch's generator makes it from another overload


def read_native_functions(text: str) -> dict[str, OperatorFacts]:
    """Every operator overload of the list, by name, those that PyTorch generates included."""
    found: dict[str, OperatorFacts] = {}
    for entry in _entries(text.splitlines()):
        facts = entry.facts()
        found[facts.name] = facts
        for name in entry.generated():
            found[name] = replace(
                facts,
                name=name,
                structured=False,
                structured_delegate="",
                kernels=(_GENERATED_KERNEL,),
                generated=True,
            )
    return found


def write_operator_facts(facts: Mapping[str, OperatorFacts], path: Path) -> None:
    """Write the table that `load_operator_facts` reads."""
    rows = [
        (
            fact.name,
            fact.structured_delegate,
            "structured" if fact.structured else "",
            fact.device_check.value,
            ",".join(fact.kernels),
            "generated" if fact.generated else "",
        )
        for _, fact in sorted(facts.items())
    ]
    _write_table(rows, path)


def _write_table(rows: Iterable[Sequence[str]], path: Path) -> None:
    """A line per overload, its fields divided by tabs."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows), "utf-8")


def _read_table(path: Path) -> Iterator[list[str]]:
    return (line.split("\t") for line in path.read_text("utf-8").splitlines())


def load_operator_facts(path: Path) -> dict[str, OperatorFacts]:
    """Read the table that the build has written."""
    return {
        name: OperatorFacts(
            name=name,
            structured=bool(structured),
            structured_delegate=delegate,
            device_check=DeviceCheck(device_check),
            kernels=tuple(kernels.split(",")) if kernels else (),
            generated=bool(generated),
        )
        for name, delegate, structured, device_check, kernels, generated in _read_table(path)
    }


@dataclass(frozen=True)
class _FunctionEntry:
    """One `- func:` of the list: its fields as text, with comments, and the keys below `dispatch`."""

    name: str
    fields: Mapping[str, str]
    kernels: tuple[str, ...]

    def facts(self) -> OperatorFacts:
        delegate = self._value("structured_delegate")
        made = _INNER_LOOP_KERNELS if "ufunc_inner_loop" in self.fields else ()
        default = () if delegate or "dispatch" in self.fields else (_DEFAULT_KERNEL,)
        check = DeviceCheck.SAME
        if self._value("device_check") == "NoCheck":  # only the comment tells who checks instead
            by_iterator = "TensorIterator" in self.fields["device_check"]
            check = DeviceCheck.ITERATOR if by_iterator else DeviceCheck.NONE
        return OperatorFacts(
            name=self.name,
            structured=self._value("structured") == "True",
            structured_delegate=delegate,
            device_check=check,
            kernels=(*made, *self.kernels) or default,
            generated=False,
        )

    def generated(self) -> list[str]:
        core = "core" in re.findall(r"\w+", self._value("tags"))
        if _DEFAULT_KERNEL in self.facts().kernels and not core:  # listed, but the generator passes over them
            return []
        return [name.strip() for name in self._value("autogen").split(",") if name.strip()]

    def _value(self, field: str) -> str:
        return self.fields.get(field, "").partition("#")[0].strip()


def _entries(lines: Iterable[str]) -> Iterator[_FunctionEntry]:
    name, field = "", ""
    fields: dict[str, str] = {}
    kernels: list[str] = []
    for line in lines:
        if begin := _FUNC.match(line):
            if name:
                yield _FunctionEntry(name, fields, tuple(kernels))
            name, field, fields, kernels = begin[1], "", {}, []
        elif line.startswith("- "):
            raise BuildError(
                Text(
                    f"PyTorch's operator list has an unreadable line: {line!r}",
                    f"PyTorch 的算子清单中有无法解析的行：{line!r}",
                )
            )
        elif match := _FIELD.match(line):
            field = match[1]
            fields[field] = match[2] or ""
        elif field == "dispatch" and (match := _KERNEL.match(line)):
            kernels += [key.strip() for key in match[1].split(",")]
    if name:
        yield _FunctionEntry(name, fields, tuple(kernels))


SHIPPED_TABLE = Path(__file__).parent / TABLE
SHIPPED_RELEASE = "2.13"  # the PyTorch of which the table was made


def operator_facts(torch_version: str = "") -> Mapping[str, OperatorFacts]:
    """Every operator of a PyTorch, by name without `aten::`; "": of the installed one.

    Other releases than the installed one and that of our own table are not at hand: the nearest stands in for them.
    """
    installed = installed_release()
    wanted = release(torch_version) or installed or SHIPPED_RELEASE
    if installed and (wanted == installed or wanted != SHIPPED_RELEASE):
        return _installed_list()
    return _shipped_list()


def installed_list_file() -> Path | None:
    """PyTorch's own list on this machine; None without PyTorch."""
    folder = package_folder("torchgen")
    file = folder / LIST_IN_TORCHGEN if folder else None
    return file if file and file.is_file() else None


@cache
def installed_release() -> str:
    """2.13; "" without PyTorch. Does not import it: that takes seconds."""
    folder = package_folder("torch")
    if folder is None or installed_list_file() is None:
        return ""
    return release(torch_version(folder))


def torch_version(folder: Path) -> str:
    """2.13.0+cpu, of the PyTorch in a folder; "" if the folder does not say it."""
    try:
        text = (folder / "version.py").read_text("utf-8")
    except OSError:
        return ""
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return found[1] if found else ""


def release(version: str) -> str:
    """2.13 of 2.13.0+cpu; "" if it is no version."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else ""


@cache
def _installed_list() -> Mapping[str, OperatorFacts]:
    file = installed_list_file()
    assert file is not None
    return read_native_functions(file.read_text("utf-8"))


@cache
def _shipped_list() -> Mapping[str, OperatorFacts]:
    return load_operator_facts(SHIPPED_TABLE)


def package_folder(name: str) -> Path | None:
    """Where an installed package lies; it is not imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


SHIPPED_SCHEMAS = Path(__file__).parent / "schemas.tsv"

_SIGNATURE = re.compile(r"^- func: ([\w.]+)\((.*)\) -> (.*)$", re.MULTILINE)
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
    """The arguments of one overload."""

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
    found = []
    for name, arguments, returns in _SIGNATURE.findall(text):
        # at the commas between arguments, not at those of a default such as `[0, 1]`
        divided = re.split(r", (?![^\[\]]*\])", arguments) if arguments else []
        described = [part.rpartition(" ") for part in divided if part != "*"]
        schema = Schema(
            name=name,
            arguments=tuple(word.partition("=")[0] for _, _, word in described),
            kinds=tuple(_kind(type_) for type_, _, _ in described),
            is_view=_READ_ONLY_ALIAS.search(returns) is not None,
        )
        found.append(schema)
    return found


def write_schemas(schemas: Iterable[Schema], path: Path) -> None:
    """Write the table of the arguments of all overloads."""
    rows = [
        (
            schema.name,
            "".join(kind.value for kind in schema.kinds),
            ",".join(schema.arguments),
            "view" if schema.is_view else "",
        )
        for schema in sorted(schemas, key=lambda schema: schema.name)
    ]
    _write_table(rows, path)


@cache
def schemas() -> Mapping[str, tuple[Schema, ...]]:
    """The overloads of each operator, by its name without `aten::` and overload."""
    found: dict[str, list[Schema]] = {}
    for name, kinds, arguments, view in _read_table(SHIPPED_SCHEMAS):
        names = tuple(arguments.split(",")) if arguments else ()
        schema = Schema(name, names, tuple(map(ArgumentKind, kinds)), bool(view))
        found.setdefault(name.partition(".")[0], []).append(schema)
    return {name: tuple(overloads) for name, overloads in found.items()}


def choose_overload(name: str, recorded: Sequence[ArgumentKind] | None) -> Schema | None:
    """The one overload of an operator (without `aten::`) that fits what was recorded; None if that is not clear.

    Without a record of the arguments it is clear only if there is one overload, out= forms aside.
    """
    fitting = [
        schema
        for schema in schemas().get(name, ())
        if recorded is None
        or (len(recorded) == len(schema.kinds) and all(map(ArgumentKind.fits, recorded, schema.kinds)))
    ]
    if len(fitting) > 1:
        fitting = [schema for schema in fitting if not schema.writes_to_given]
    return fitting[0] if len(fitting) == 1 else None


def _kind(type_: str) -> ArgumentKind:
    plain = re.sub(r"\(.*?\)", "", type_).replace("?", "")
    base, _, is_list = plain.partition("[")
    if base == "Tensor":
        return ArgumentKind.TENSORS if is_list else ArgumentKind.TENSOR
    if base in _SCALARS:
        return ArgumentKind.SCALARS if is_list else ArgumentKind.SCALAR
    return ArgumentKind.OTHER

"""What PyTorch's own operator list (`native_functions.yaml`) says of each operator: who computes it, and whether
its arguments may lie on several devices. Read once at build time, kept as a small table beside the library.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from pathlib import Path

from torchferry.errors import BuildError

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
    """Write the table: a line per overload, its fields divided by tabs."""
    path.write_text("".join(_line(facts[name]) for name in sorted(facts)), "utf-8")


def load_operator_facts(path: Path) -> dict[str, OperatorFacts]:
    """Read the table that the build has written."""
    rows = (line.split("\t") for line in path.read_text("utf-8").splitlines())
    return {row[0]: _facts(*row) for row in rows}


def _line(facts: OperatorFacts) -> str:
    fields = (
        facts.name,
        facts.structured_delegate,
        "structured" if facts.structured else "",
        facts.device_check.value,
        ",".join(facts.kernels),
        "generated" if facts.generated else "",
    )
    return "\t".join(fields) + "\n"


def _facts(
    name: str, delegate: str, structured: str, device_check: str, kernels: str, generated: str
) -> OperatorFacts:
    return OperatorFacts(
        name=name,
        structured=bool(structured),
        structured_delegate=delegate,
        device_check=DeviceCheck(device_check),
        kernels=tuple(kernels.split(",")) if kernels else (),
        generated=bool(generated),
    )


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
        return OperatorFacts(
            name=self.name,
            structured=self._value("structured") == "True",
            structured_delegate=delegate,
            device_check=self._device_check(),
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

    def _device_check(self) -> DeviceCheck:
        if self._value("device_check") != "NoCheck":
            return DeviceCheck.SAME
        # only the comment tells who checks instead
        return DeviceCheck.ITERATOR if "TensorIterator" in self.fields["device_check"] else DeviceCheck.NONE


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
            raise BuildError(f"PyTorch's operator list has a line that can't be read: {line!r}")
        elif match := _FIELD.match(line):
            field = match[1]
            fields[field] = match[2] or ""
        elif field == "dispatch" and (match := _KERNEL.match(line)):
            kernels += [key.strip() for key in match[1].split(",")]
    if name:
        yield _FunctionEntry(name, fields, tuple(kernels))


# PyTorch's operator list, whether PyTorch is installed or not.

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
    folder = _package_folder("torchgen")
    file = folder / LIST_IN_TORCHGEN if folder else None
    return file if file and file.is_file() else None


@cache
def installed_release() -> str:
    """2.13; "" without PyTorch. Does not import it: that takes seconds."""
    folder = _package_folder("torch")
    if folder is None or installed_list_file() is None:
        return ""
    try:
        text = (folder / "version.py").read_text("utf-8")
    except OSError:
        return ""
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"]+)", text, re.MULTILINE)
    return release(found[1]) if found else ""


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


def _package_folder(name: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None

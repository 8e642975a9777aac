"""How the toolkit calls what an operator function runs: names, types, cores; and which of its tensors come out."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_INTERFACES = Path(__file__).parent.parent / "interfaces.tsv"
_TYPES = Path(__file__).parent / "kernel_types.tsv"

CUBE, MIXED, VECTOR = "AI_CORE", "MIX_AIC", "AI_VECTOR_CORE"
_CUBE = re.compile(r"mat_?mul|(?:add|baddb|addb|b|^)mm$|(?:add|^)mv$|conv|linear|lstm|gru", re.IGNORECASE)
_MIXED = re.compile(r"attention|grouped_?matmul|ffn|moe|mla", re.IGNORECASE)
# Functions differ by what their last argument is, operators don't: Adds, EqTensor, GeluV2.
_INPLACE, _VERSION, _FORM = re.compile(r"^Inplace"), re.compile(r"V\d$"), re.compile(r"(?:Tensor|Scalar)+$")
_OUTPUT = re.compile(
    r"(?:Out|Ref)$|^out|^output|^result|^y\d?$|^save|^grad(?!Out|Y)|^d[qkvx]$", re.IGNORECASE
)
_NO_OUTPUT = re.compile(r"^grad_?(?:Out(?:put)?|Y)$", re.IGNORECASE)
_DTYPES = {
    "Float": "FLOAT", "Half": "FLOAT16", "BFloat16": "DT_BF16", "Double": "DOUBLE", "Long": "INT64", "Int": "INT32",
    "Short": "INT16", "Char": "INT8", "Byte": "UINT8", "Bool": "BOOL", "ComplexFloat": "COMPLEX64",
    "ComplexDouble": "COMPLEX128",
}  # fmt: skip
_ADDS_FIRST = re.compile(
    r"^aclnn(?:Inplace)?(?:add|badd)b?m[mv]", re.IGNORECASE
)  # what the product is added to
_FORMATS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}  # the plugin's, by the number of dimensions; else ND


@dataclass(frozen=True)
class Kernel:
    """What the profiler's tables show of it."""

    name: str
    type: str
    core: str


@dataclass(frozen=True)
class KernelTensor:
    """What one was called with."""

    shape: str  # "2,3"
    dtype: str
    format: str


@cache
def kernel_of(function: str) -> Kernel:
    """One kernel stands for the function: on hardware it may be several."""
    plain = _INPLACE.sub("", function.removeprefix("aclnn"))
    type_ = _types().get(plain) or _general(plain)
    core = MIXED if _MIXED.search(plain) else CUBE if _CUBE.search(plain) else VECTOR
    return Kernel(f"{function}_{type_}AiCore_{type_}", type_, core)


def _general(plain: str) -> str:
    """Add for Adds and AddV3; Gelu for GeluV2."""
    name = _FORM.sub("", _VERSION.sub("", plain)) or plain
    singular = name.removesuffix("s")
    return singular if f"aclnn{singular}" in _interfaces() else name


def tensors_in(function: str, text: str) -> tuple[list[KernelTensor], list[KernelTensor]]:
    """Inputs and outputs, of what was recorded: "0:Float:2,3;1:Float:2,3"."""
    ins, outs = _sides(function)
    found = [field.split(":") for field in text.split(";") if field]
    inputs = [
        _tensor(dtype, shape)
        for number, dtype, shape in found
        if int(number) in ins or int(number) not in outs
    ]
    if _ADDS_FIRST.match(function) and len(inputs) == 3:
        inputs = [*inputs[1:], inputs[0]]
    return inputs, [_tensor(dtype, shape) for number, dtype, shape in found if int(number) in outs]


def _tensor(dtype: str, shape: str) -> KernelTensor:
    dimensions = shape.count(",") + 1 if shape else 0
    return KernelTensor(shape, _DTYPES.get(dtype, dtype.upper()), _FORMATS.get(dimensions, "ND"))


@cache
def _sides(function: str) -> tuple[frozenset[int], frozenset[int]]:
    """Which arguments go in, which come out. By convention those that come out are the last tensors; the interface
    does not say where they begin, their names do."""
    names = [
        (number, name)
        for number, (name, kind) in enumerate(_interfaces().get(function, ()))
        if kind in ("tensor", "tensors")
    ]
    outs: set[int] = {number for number, name in names if name.endswith("Ref")}
    ins = set(outs)
    if not outs:
        for number, name in reversed(names):
            if outs and (_NO_OUTPUT.match(name) or not _OUTPUT.search(name)):
                break
            outs.add(number)
    return frozenset(ins | {number for number, _ in names if number not in outs}), frozenset(outs)


@cache
def _interfaces() -> dict[str, list[tuple[str, str]]]:
    found = {}
    for function, arguments in _table(_INTERFACES):
        pairs = (word.partition(":") for word in arguments.split())
        found[function] = [(name, kind) for name, _, kind in pairs]
    return found


@cache
def _types() -> dict[str, str]:
    return dict(_table(_TYPES))


def _table(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row[0], row[1]) for row in rows if len(row) > 1 and not row[0].startswith("#")]

"""What the names in a pickle mean: harmless, a class that must be there, or something that no checkpoint needs."""

from __future__ import annotations

import argparse
import datetime
import pathlib
import re
import struct
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from torchferry.checkpoint.model import Global, Known, Opaque, Storage, TensorEntry
from torchferry.units import ITEM_SIZES

# Values of the standard library and of NumPy that a checkpoint may hold: made here, by what the
# pickle says of them.
#
# None of these constructors runs anything that the file could choose.

_FACTORIES: Mapping[str, Callable[[], Any]] = {
    "builtins.list": list, "builtins.dict": dict, "builtins.set": set, "builtins.int": int, "builtins.float": float,
    "builtins.str": str,
}  # fmt: skip
_PATHS = ("PurePosixPath", "PureWindowsPath", "PosixPath")


class NotAValueError(Exception):
    """The pickle describes none of these, or not as they describe themselves."""


def value(node: Opaque, made: Callable[[object], Any]) -> Any:
    """The value that an object describes; `made` makes what is in it. Raises NotAValueError."""
    maker = _MAKERS.get(node.class_name)
    if maker is None:
        raise NotAValueError
    try:
        return maker(node, made)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        raise NotAValueError from None


def _namespace(kind: Callable[[], Any]) -> Callable[[Opaque, Callable[[object], Any]], Any]:
    def make(node: Opaque, made: Callable[[object], Any]) -> Any:
        result = kind()
        state = node.state if isinstance(node.state, dict) else {}
        vars(result).update({str(name): made(part) for name, part in state.items()})
        return result

    return make


def _default_dictionary(node: Opaque, made: Callable[[object], Any]) -> Any:
    (factory,) = node.arguments or (None,)
    makes = _FACTORIES[factory.dotted] if isinstance(factory, Global) else None
    if makes is None and factory is not None:
        raise NotAValueError
    return defaultdict(makes, {made(key): made(part) for key, part in node.entries.items()})


def _plainly(kind: Callable[..., Any]) -> Callable[[Opaque, Callable[[object], Any]], Any]:
    """A class that takes nothing but numbers, texts and bytes."""

    def make(node: Opaque, made: Callable[[object], Any]) -> Any:
        if not all(isinstance(each, (int, str, bytes)) for each in node.arguments):
            raise NotAValueError
        return kind(*node.arguments)

    return make


_MAKERS: Mapping[str, Callable[[Opaque, Callable[[object], Any]], Any]] = {
    "argparse.Namespace": _namespace(argparse.Namespace),
    "types.SimpleNamespace": _namespace(types.SimpleNamespace),
    "collections.defaultdict": _default_dictionary,
    "collections.Counter": lambda node, made: Counter(made(node.arguments[0]) if node.arguments else {}),
    "datetime.datetime": _plainly(datetime.datetime),
    "datetime.date": _plainly(datetime.date),
    "datetime.timedelta": _plainly(datetime.timedelta),
    **{f"pathlib.{name}": _plainly(getattr(pathlib, name)) for name in _PATHS},
    **{f"pathlib._local.{name}": _plainly(getattr(pathlib, name)) for name in _PATHS},
}
NAMES = frozenset(_MAKERS)


# What NumPy writes into a pickle and into its own files: arrays and numbers, described without NumPy.

_DTYPES: Mapping[str, str] = {
    "f8": "float64", "f4": "float32", "f2": "float16", "i8": "int64", "i4": "int32", "i2": "int16", "i1": "int8",
    "u8": "uint64", "u4": "uint32", "u2": "uint16", "u1": "uint8", "b1": "bool", "c8": "complex64", "c16": "complex128",
}  # fmt: skip
_NUMBERS = {
    "float64": "d", "float32": "f", "float16": "e", "int64": "q", "int32": "i", "int16": "h", "int8": "b",
    "uint64": "Q", "uint32": "I", "uint16": "H", "uint8": "B", "bool": "?",
}  # fmt: skip
# NumPy 2 has moved them.
RECONSTRUCT = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
SCALAR = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
FROM_BUFFER = ("numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
ARRAY_NAMES = frozenset({*RECONSTRUCT, *SCALAR, *FROM_BUFFER, "numpy.dtype", "numpy.ndarray"})


def dtype_named(text: str) -> str:
    """The dtype of a name as `<f4`; "" for one that tensors have not, and for big-endian numbers."""
    order, code = (text[0], text[1:]) if text[:1] in ("<", ">", "|", "=") else ("<", text)
    return "" if order == ">" else _DTYPES.get(code, "")


def _dtype(node: object) -> str:
    if not isinstance(node, Opaque) or node.class_name != "numpy.dtype" or not node.arguments:
        return ""
    order = node.state[1] if isinstance(node.state, tuple) and len(node.state) > 1 else "<"
    return "" if order == ">" else dtype_named(str(node.arguments[0]))


def number(arguments: tuple[Any, ...]) -> Known | None:
    """The number that numpy's `scalar` makes."""
    if len(arguments) != 2 or not isinstance(arguments[1], bytes):
        return None
    dtype = _dtype(arguments[0])
    letter = _NUMBERS.get(dtype)
    if letter is None or len(arguments[1]) != ITEM_SIZES[dtype]:
        return None
    return Known(f"numpy.{dtype}", struct.unpack(f"<{letter}", arguments[1]))


def rebuilt(state: Any, key: str) -> tuple[TensorEntry, bytes] | None:
    """The array that `_reconstruct` and its state make."""
    if not isinstance(state, tuple) or len(state) != 5:
        return None
    _, shape, dtype, is_fortran, data = state
    return described(shape, _dtype(dtype), bool(is_fortran), data, key)


def from_buffer(arguments: tuple[Any, ...], key: str) -> tuple[TensorEntry, bytes] | None:
    """The array that `_frombuffer` makes."""
    if len(arguments) != 4:
        return None
    data, dtype, shape, order = arguments
    return described(shape, _dtype(dtype), order == "F", data, key)


def described(
    shape: Any, dtype: str, is_fortran: bool, data: object, key: str
) -> tuple[TensorEntry, bytes] | None:
    """An array over these bytes; None where it is not one that a tensor could be."""
    if isinstance(data, str):  # Python 2 knew no difference
        data = data.encode("utf-8", "surrogateescape")
    if not dtype or not isinstance(data, (bytes, bytearray)):
        return None
    tensor = array(tuple(map(int, shape)), dtype, is_fortran, key)
    return (tensor, bytes(data)) if tensor.nbytes == len(data) else None


def array(shape: tuple[int, ...], dtype: str, is_fortran: bool, key: str) -> TensorEntry:
    """An array, row after row or column after column."""
    strides = contiguous_strides(shape[::-1])[::-1] if is_fortran else contiguous_strides(shape)
    return TensorEntry(Storage(key, dtype, "cpu", 0), dtype, shape, strides, 0, "cpu", is_array=True)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class LoadingNeed(Enum):
    """What it takes to load a name."""

    PLAIN = "plain"  # tensors and containers; torch.load takes it with weights_only
    VALUE = "value"  # of the standard library or NumPy: harmless, but refused by torch.load with weights_only
    NEEDED = "needed"  # a class whose code runs when the file is loaded with --allow-pickle
    DANGEROUS = "dangerous"  # runs commands, code or programs, or reaches for files


_PLAIN = frozenset({
    "collections.OrderedDict", "collections.Counter", "builtins.set", "builtins.frozenset", "builtins.complex",
    "builtins.bytearray", "_codecs.encode", "torch.Size", "torch.device", "torch.Tensor",
    "torch.nn.parameter.Parameter", "torch.serialization._get_layout", "torch._tensor._rebuild_from_type_v2",
})  # fmt: skip
_PLAIN_PATTERN = re.compile(
    r"torch\.(?:_utils\._rebuild_\w+|jit\._pickle\.\w+|(?:\w+\.)?\w*Storage|\w*Tensor|per_\w+|"
    + "|".join(ITEM_SIZES)
    + r")|__torch__\..*"
)
_HARMLESS_BUILTINS = frozenset({
    "dict", "list", "tuple", "int", "float", "str", "bytes", "bool", "slice", "range", "object",
})  # fmt: skip
_DANGEROUS_MODULES = frozenset({
    "os", "posix", "nt", "sys", "subprocess", "pty", "shutil", "socket", "ctypes", "importlib", "runpy", "code",
    "codeop", "webbrowser", "pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "types", "multiprocessing",
    "threading", "asyncio", "concurrent", "http", "urllib", "ftplib", "smtplib", "telnetlib", "requests", "commands",
    "platform", "pdb", "bdb", "timeit", "cProfile", "profile", "trace", "pip", "ensurepip", "venv", "signal", "pydoc",
    "tempfile", "glob", "io", "_io", "operator", "_operator", "inspect", "gc", "atexit", "doctest", "idlelib",
})  # fmt: skip
_REACHED = frozenset({
    "os", "posix", "sys", "subprocess", "shutil", "socket", "ctypes", "importlib", "runpy", "pty", "builtins",
    "__builtins__",
})  # fmt: skip
_DANGEROUS = frozenset({
    "torch.load", "torch.hub.load", "torch.jit.load",
    "torch.serialization.load", "torch._dynamo.guards.GuardBuilder.get", "numpy.testing._private.utils.runstring",
    "numpy.load", "numpy.f2py.crackfortran.getlincoef",
})  # fmt: skip


def meaning(name: Global) -> LoadingNeed:
    """What it takes to load a name."""
    if name.dotted in _PLAIN or _PLAIN_PATTERN.fullmatch(name.dotted):
        return LoadingNeed.PLAIN
    if name.dotted in NAMES or name.dotted in ARRAY_NAMES:
        return LoadingNeed.VALUE
    top = name.module.split(".", 1)[0]
    through = _REACHED.intersection(name.name.split("."))  # torch's os is the os of everybody
    if name.dotted in _DANGEROUS or top in _DANGEROUS_MODULES or through:
        return LoadingNeed.DANGEROUS
    if top == "builtins":
        return LoadingNeed.VALUE if name.name in _HARMLESS_BUILTINS else LoadingNeed.DANGEROUS
    if name.module.startswith(("torch.utils.cpp_extension", "torch.utils.collect_env", "torch.hub")):
        return LoadingNeed.DANGEROUS
    return LoadingNeed.NEEDED


def named(names: Iterable[Global], wanted: LoadingNeed) -> list[str]:
    """Those of one meaning, in the order of the alphabet."""
    return sorted({name.dotted for name in names if meaning(name) is wanted})

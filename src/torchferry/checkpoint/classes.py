"""What the names in a pickle mean: harmless, a class that must be there, or something that no checkpoint needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from torchferry.checkpoint import arrays, values
from torchferry.checkpoint.model import ITEM_SIZES, Global


class Meaning(Enum):
    """What it takes to load a name."""

    PLAIN = "plain"  # tensors and containers; torch.load takes it with weights_only
    VALUE = (
        "value"  # of the standard library or NumPy, harmless; torch.load takes it only without weights_only
    )
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


def meaning(name: Global) -> Meaning:
    """What one name means."""
    if name.dotted in _PLAIN or _PLAIN_PATTERN.fullmatch(name.dotted):
        return Meaning.PLAIN
    if name.dotted in values.NAMES or name.dotted in arrays.NAMES:
        return Meaning.VALUE
    top = name.module.split(".", 1)[0]
    through = _REACHED.intersection(name.name.split("."))  # torch's os is the os of everybody
    if name.dotted in _DANGEROUS or top in _DANGEROUS_MODULES or through:
        return Meaning.DANGEROUS
    if top == "builtins":
        return Meaning.VALUE if name.name in _HARMLESS_BUILTINS else Meaning.DANGEROUS
    if name.module.startswith(("torch.utils.cpp_extension", "torch.utils.collect_env", "torch.hub")):
        return Meaning.DANGEROUS
    return Meaning.NEEDED


def named(names: Iterable[Global], wanted: Meaning) -> list[str]:
    """Those of one meaning, in the order of the alphabet."""
    return sorted({name.dotted for name in names if meaning(name) is wanted})

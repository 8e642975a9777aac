"""Values of the standard library and of NumPy that a checkpoint may hold: made here, by what the pickle says of them.

None of these constructors runs anything that the file could choose.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from torchferry.checkpoint.model import Global, Opaque

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


def _counter(node: Opaque, made: Callable[[object], Any]) -> Any:
    return Counter(made(node.arguments[0]) if node.arguments else {})


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
    "collections.Counter": _counter,
    "datetime.datetime": _plainly(datetime.datetime),
    "datetime.date": _plainly(datetime.date),
    "datetime.timedelta": _plainly(datetime.timedelta),
    **{f"pathlib.{name}": _plainly(getattr(pathlib, name)) for name in _PATHS},
    **{f"pathlib._local.{name}": _plainly(getattr(pathlib, name)) for name in _PATHS},
}
NAMES = frozenset(_MAKERS)

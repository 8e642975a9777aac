"""What one process tells another: a frozen dataclass as JSON, in a file or in a variable of the environment.

Types decide what comes back: tuples, enums, records in records. Imports no torch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from torchferry.errors import RunError
from torchferry.text import Text, then

_Record = TypeVar("_Record")
_Own = TypeVar("_Own", bound="Settings")


def encode(record: Any) -> str:
    """A record as text."""
    return json.dumps(asdict(record), separators=(",", ":"))


def decode(kind: type[_Record], text: str | bytes) -> _Record:
    """What `encode` has made of a record of this kind. ValueError says what is wrong with a text that is none."""
    return from_plain(kind, json.loads(text))


def from_plain(kind: type[_Record], plain: Any) -> _Record:
    """A record of this kind from its fields as JSON has them."""
    record: _Record = _made(kind, plain, kind.__name__)
    return record


def _made(kind: Any, plain: Any, where: str) -> Any:
    if is_dataclass(kind):
        return _record(kind, plain, where)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        others = [each for each in inner if each is not type(None)]
        return None if plain is None else _made(others[0] if len(others) == 1 else Any, plain, where)
    if origin is not None:
        return _collection(origin, inner, plain, where)
    if kind is Any:
        return plain
    if issubclass(kind, Enum):
        return kind(plain)
    if hasattr(kind, "_fields"):  # a named tuple
        return kind(*_listed(plain, where))
    is_whole = kind is float and isinstance(plain, int)
    if (not isinstance(plain, kind) and not is_whole) or (isinstance(plain, bool) and kind is not bool):
        raise ValueError(f"{where} is to be {kind.__name__}, not {type(plain).__name__}")
    return plain


def _record(kind: Any, plain: Any, where: str) -> Any:
    if not isinstance(plain, dict):
        raise ValueError(f"{where} is to be an object, not {type(plain).__name__}")
    known = {field.name: field for field in fields(kind) if field.init}
    unknown = [name for name in plain if name not in known]
    if unknown:
        raise ValueError(f"{where} has no {unknown[0]}")
    for name, field in known.items():
        if name not in plain and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{where} lacks {name}")
    types = _types(kind)
    return kind(**{name: _made(types[name], value, name) for name, value in plain.items()})


def _collection(origin: Any, inner: tuple[Any, ...], plain: Any, where: str) -> Any:
    if issubclass(origin, Mapping):
        if not isinstance(plain, dict):
            raise ValueError(f"{where} is to be an object, not {type(plain).__name__}")
        return {key: _made(inner[1], value, where) for key, value in plain.items()}
    items = _listed(plain, where)
    if origin is not tuple or inner[-1] is Ellipsis:
        return origin(_made(inner[0], item, where) for item in items)
    if len(items) != len(inner):
        raise ValueError(f"{where} is to have {len(inner)} items, not {len(items)}")
    return tuple(_made(kind, item, where) for kind, item in zip(inner, items, strict=True))


def _listed(plain: Any, where: str) -> list[Any]:
    if not isinstance(plain, list):
        raise ValueError(f"{where} is to be a list, not {type(plain).__name__}")
    return plain


@lru_cache(maxsize=64)
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@dataclass(frozen=True)
class Settings:
    """Settings of a process and of those that it starts, in a variable of the environment that each subclass names."""

    variable: ClassVar[str]
    repair: ClassVar[Text] = Text(
        "only ferry sets it: unset it", "该变量只由 ferry 设置：请取消设置"
    )  # where the variable can't be read

    def encode(self) -> str:
        """The value of the environment variable."""
        return encode(self)

    @classmethod
    def read(cls: type[_Own], environment: Mapping[str, str]) -> _Own | None:
        """Those of a process; None where the variable is not set, or empty."""
        value = environment.get(cls.variable)
        if not value:
            return None
        try:
            return decode(cls, value)
        except (ValueError, RecursionError) as error:
            raise unreadable(cls.variable, error, cls.repair) from None


@contextmanager
def environment_kept() -> Iterator[None]:
    """Take back what is changed in the environment meanwhile."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value


def set_variables(values: Mapping[str, str | None]) -> None:
    """Give variables of the environment these values; None takes one away."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def unreadable(variable: str, error: Exception, repair: Text = Settings.repair) -> RunError:
    """What a user is told of a variable of ours that somebody else has set."""
    said = Text(f"{variable} can't be read ({error})", f"无法读取 {variable}（{error}）")
    return RunError(then(said, repair))

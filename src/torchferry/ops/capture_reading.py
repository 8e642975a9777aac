"""Values of a JSON document that know their place in it, so that an error can name what is wrong and where."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import Enum
from typing import NoReturn, TypeVar

from torchferry.errors import InputError

_T = TypeVar("_T")
_Choice = TypeVar("_Choice", bound=Enum)
_MAX_COUNT = 2**63 - 1
_MAX_SECONDS = 1e12
_FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def parse(text: str, name: str) -> Node:
    """The document's root; `name` is what errors call the file."""
    try:
        return Node(json.loads(text, parse_constant=_refuse_constant), name)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"{name}: not JSON ({error.msg}: {where}); give a file that `ferry ops` wrote"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: not JSON ({error}); give a file that `ferry ops` wrote") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


class Node:
    """A value and what it is part of; there may be millions, so a place is put together only for an error."""

    __slots__ = ("_key", "_parent", "name", "value")

    def __init__(self, value: object, name: str, parent: Node | None = None, key: str | int = "") -> None:
        self.value = value
        self.name = name  # the file's
        self._parent = parent
        self._key = key

    @property
    def place(self) -> str:
        """uses[3][1]; "" is the document."""
        if self._parent is None:
            return ""
        above = self._parent.place
        if isinstance(self._key, int):
            return f"{above}[{self._key}]"
        return f"{above}.{self._key}" if above else self._key

    def format(self) -> object:
        """The field that tells documents apart; None where there is none."""
        return self.value.get("format") if isinstance(self.value, dict) else None

    def check_format(self, known: str, newest: int) -> None:
        """Refuse documents of others, and of newer versions."""
        if self.format() != known:
            raise InputError(
                f"{self.name}: {self._where('')}not a capture of operators; give a file that `ferry ops` wrote"
            )
        version = self.at("version").whole()
        if version > newest:
            raise InputError(
                f"{self.name}: written by a newer TorchFerry (format {version}, this one reads up to {newest});"
                " upgrade torchferry"
            )

    def at(self, key: str) -> Node:
        """A field of an object."""
        if not isinstance(self.value, dict):
            self._must_be("an object")
        if key not in self.value:
            raise InputError(f"{self.name}: {self._where(key)}is missing; make the file again")
        return Node(self.value[key], self.name, self, key)

    def items(self, count: int | None = None) -> list[Node]:
        """The entries of a list, which must be so many."""
        if not isinstance(self.value, list) or (count is not None and len(self.value) != count):
            self._must_be("a list" if count is None else f"a list of {count}")
        return [Node(each, self.name, self, at) for at, each in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self._must_be("a string")
        return self.value

    def whole(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self._must_be("a whole number")
        return self.value

    def count(self) -> int:
        """A number of things."""
        value = self.whole()
        if not 0 <= value <= _MAX_COUNT:
            self._must_be("a whole number that is not negative, and fits into 64 bits")
        return value

    def seconds(self) -> float:
        """A time that reports can add up."""
        value = self.value
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= _MAX_SECONDS:
            self._must_be(f"a number of seconds from 0 to {_MAX_SECONDS:.0e}")
        return float(value)

    def wholes(self) -> tuple[int, ...]:
        if not isinstance(self.value, list) or not all(type(each) is int for each in self.value):
            self._must_be("a list of whole numbers")
        return tuple(self.value)

    def number(self) -> float:
        """A number with a fraction, or an object for one that JSON can't write."""
        value = self.value
        if isinstance(value, dict) and len(value) == 1 and value.get("float") in tuple(_FLOATS):
            return _FLOATS[value["float"]]
        if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > sys.float_info.max:
            self._must_be('a number or {"float": "inf", "-inf" or "nan"}')
        return float(value)

    def plain(self) -> bool | int | float | str | None:
        """A value that JSON writes as it is."""
        if self.value is not None and not isinstance(self.value, (bool, int, float, str)):
            self._must_be("null, true, false, a number or a string")
        return self.value

    def flag(self) -> bool:
        if self.value not in (0, 1):
            self._must_be("0 or 1")
        return bool(self.value)

    def choice(self, choices: type[_Choice]) -> _Choice:
        """One of an enumeration's values."""
        values = [choice.value for choice in choices]
        if self.value not in values:
            self._must_be("one of " + ", ".join(values))
        return choices(self.value)

    def entry_of(self, table: Sequence[_T], table_name: str) -> _T:
        """The entry of a table that this position names."""
        at = self.whole()
        if not 0 <= at < len(table):
            self._must_be(f"a position in {table_name}, which has {len(table)}")
        return table[at]

    def _must_be(self, what: str) -> NoReturn:
        place = self.place or "the document"
        raise InputError(f"{self.name}: {place} must be {what}; make the file again")

    def _where(self, key: str) -> str:
        place = ".".join(filter(None, (self.place, key)))
        return f"{place} " if place else ""

"""What one process tells another arrives as it was sent, and what nobody of ours has sent is refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import pytest

from torchferry.errors import RunError
from torchferry.settings import Settings, decode, encode
from torchferry.text import Text


class Colour(str, Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]
    pair: tuple[int, float]


@dataclass(frozen=True)
class Outer(Settings):
    variable: ClassVar[str] = "TORCHFERRY_TEST"

    inner: Inner
    colour: Colour = Colour.RED
    count: int | None = None
    exact: float = 0.5
    is_on: bool = False
    by_name: Mapping[str, int] | None = None
    all_of_them: tuple[Inner, ...] = ()
    said: Text = Text("a", "甲")
    anything: Any = None


INNER = Inner(("a b", "ü"), (1, 2.5))
FULL = Outer(INNER, Colour.RED, 3, 1, True, {"x": 1}, (INNER, INNER), Text("b", "乙"), [1, {"a": None}])


@pytest.mark.parametrize("record", [FULL, Outer(INNER)])
def test_a_record_arrives_as_it_was_sent(record: Outer) -> None:
    assert decode(Outer, encode(record)) == record
    assert Outer.read({Outer.variable: record.encode()}) == record


def test_nothing_is_told_by_no_variable_and_by_an_empty_one() -> None:
    assert Outer.read({}) is None and Outer.read({Outer.variable: ""}) is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"inner": 3}, "inner is to be an object, not int"),
        ({"inner": {"names": "ab", "pair": [1, 2]}}, "names is to be a list, not str"),
        ({"inner": {"names": [1], "pair": [1, 2]}}, "names is to be str, not int"),
        ({"inner": {"names": [], "pair": [1]}}, "pair is to have 2 items, not 1"),
        ({"inner": {"names": []}}, "inner lacks pair"),
        ({"colour": "blue"}, "'blue' is not a valid Colour"),
        ({"count": "3"}, "count is to be int, not str"),
        ({"count": True}, "count is to be int, not bool"),
        ({"is_on": 1}, "is_on is to be bool, not int"),
        ({"is_on": None}, "is_on is to be bool, not NoneType"),
        ({"by_name": []}, "by_name is to be an object, not list"),
        ({"more": 1}, "Outer has no more"),
    ],
)
def test_what_is_wrong_is_said(changed: dict[str, Any], reason: str) -> None:
    told = json.dumps(json.loads(FULL.encode()) | changed)
    with pytest.raises(RunError) as raised:
        Outer.read({Outer.variable: told})
    assert str(raised.value) == f"TORCHFERRY_TEST can't be read ({reason}); only ferry sets it: unset it"


@pytest.mark.parametrize("text", ["{bad", "[]", "1", '"x"', "[" * 100_000, "null"])
def test_what_is_no_record_at_all(text: str) -> None:
    with pytest.raises(RunError, match="TORCHFERRY_TEST can't be read"):
        Outer.read({Outer.variable: text})

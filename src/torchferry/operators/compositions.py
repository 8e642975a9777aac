"""Other ways to write functions whose operators a device may lack; the tests run each against the original."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.schema import toml_module

FILE = Path(__file__).with_name("compositions.toml")


@dataclass(frozen=True)
class Composition:
    """One function, made of others."""

    function: str
    replaces: str  # the original, as a Python expression
    operators: tuple[str, ...]  # that are called no more: fmax for every overload, or scatter.reduce
    python: str  # defines `function`; speaks of torch
    condition: Text  # when it holds; empty: always
    differentiable: bool
    uses: tuple[str, ...]  # the operators that are called instead, in both directions

    @property
    def name(self) -> str:
        """What a user calls the original: torch.fmax."""
        return self.replaces if not self.replaces.startswith("lambda") else f"aten::{self.operators[0]}"


@cache
def compositions() -> tuple[Composition, ...]:
    """All of them, in the order of the file."""
    with FILE.open("rb") as stream:
        rows = toml_module().load(stream)["composition"]
    return tuple(
        Composition(
            function=row["function"],
            replaces=row["replaces"],
            operators=tuple(row["operators"]),
            python=row["python"].strip() + "\n",
            condition=Text(row.get("condition", ""), row.get("condition_zh", "")),
            differentiable=row.get("differentiable", True),
            uses=tuple(row.get("uses", ())),
        )
        for row in rows
    )


def compositions_for(operator: str) -> list[Composition]:
    """What can be written instead of an operator: fmax.out, of which fmax stands for every overload."""
    return _by_operator().get(operator) or _by_operator().get(operator.partition(".")[0], [])


@cache
def _by_operator() -> Mapping[str, list[Composition]]:
    found: dict[str, list[Composition]] = {}
    for composition in compositions():
        for operator in composition.operators:
            found.setdefault(operator, []).append(composition)
    return found

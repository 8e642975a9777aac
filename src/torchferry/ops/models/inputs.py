"""Reads what users write for a model's inputs: 8x3x224x224, mask=8x128:bool, batch.ids=8x128:int64:ints(0,1000).

Every --input is one argument of the model's forward pass: those without a name stand in their order, those with one
are keywords. A name with dots is a part of a dictionary (batch.ids) or, with numbers, of a list (images.0); where the
name itself is a number it is a position (0.ids: a dictionary as the first argument). The values are those of
`ops/cases/notation.py`. Imports no torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Union

from torchferry.errors import InputError
from torchferry.ops.cases.model import CaseValue
from torchferry.ops.cases.notation import parse_value

_NAMED = re.compile(r"\s*(\w+(?:\.\w+)*)\s*=(?!=)(.*)", re.DOTALL)

InputValue = Union[CaseValue, dict[str, "InputValue"], list["InputValue"]]  # noqa: UP007
_Tree = dict[str, Union[CaseValue, "_Tree"]]


@dataclass(frozen=True)
class Inputs:
    """What a model is called with."""

    args: tuple[InputValue, ...]
    kwargs: Mapping[str, InputValue]


def parse_inputs(texts: Sequence[str]) -> Inputs:
    """All inputs of a model."""
    tree: _Tree = {}
    position = 0
    for text in texts:
        named = _NAMED.fullmatch(text)
        if named:
            _put(tree, named[1].split("."), parse_value(named[2]), text)
        else:
            _put(tree, [str(position)], parse_value(text), text)
            position += 1
    positions = [name for name in tree if name.isdecimal()]
    if sorted(map(int, positions)) != list(range(len(positions))):
        raise InputError(f"--input {', '.join(positions)}: positions begin with 0 and leave none out")
    args = tuple(_value(tree[str(index)]) for index in range(len(positions)))
    return Inputs(args, {name: _value(value) for name, value in tree.items() if not name.isdecimal()})


def _put(tree: _Tree, path: list[str], value: CaseValue, text: str) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            raise InputError(f"--input {text}: {name} is a value already, and can't have parts")
        tree = inner
    if path[-1] in tree:
        raise InputError(f"--input {text}: {'.'.join(path)} is given twice")
    tree[path[-1]] = value


def _value(tree: CaseValue | _Tree) -> InputValue:
    if not isinstance(tree, dict):
        return tree
    if all(name.isdecimal() for name in tree):
        return [_value(tree[name]) for name in sorted(tree, key=int)]
    return {name: _value(value) for name, value in tree.items()}

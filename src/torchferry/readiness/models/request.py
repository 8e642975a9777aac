"""Which model is captured, and how: what a user writes on the command line, checked. Imports no torch."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Union

from torchferry.errors import InputError
from torchferry.readiness.cases.model import CaseValue
from torchferry.readiness.cases.notation import parse_value
from torchferry.text import Text

# Reads what users write for a model's inputs: 8x3x224x224, mask=8x128:bool,
# batch.ids=8x128:int64:ints(0,1000).
#
# Every --input is one argument of the model's forward pass: those without a name stand in their
# order, those with one are keywords. A name with dots is a part of a dictionary (batch.ids) or, with
# numbers, of a list (images.0); where the name itself is a number it is a position (0.ids: a
# dictionary as the first argument). The values are those of `readiness/cases/notation.py`.

_NAMED = re.compile(r"\s*(\w+(?:\.\w+)*)\s*=(?!=)(.*)", re.DOTALL)

InputValue = Union[CaseValue, dict[str, "InputValue"], list["InputValue"]]  # noqa: UP007
_Tree = dict[str, Union[CaseValue, "_Tree"]]


@dataclass(frozen=True)
class ModelInputs:
    """What a model is called with."""

    args: tuple[InputValue, ...]
    kwargs: Mapping[str, InputValue]


def parse_inputs(texts: Sequence[str]) -> ModelInputs:
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
        raise InputError(
            Text(
                f"--input {', '.join(positions)}: positions must start at 0 without gaps",
                f"--input {', '.join(positions)}：位置必须从 0 开始且连续",
            )
        )
    args = tuple(_value(tree[str(index)]) for index in range(len(positions)))
    return ModelInputs(args, {name: _value(value) for name, value in tree.items() if not name.isdecimal()})


def _put(tree: _Tree, path: list[str], value: CaseValue, text: str) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            raise InputError(
                Text(
                    f"--input {text}: {name} is already a value and can't have parts",
                    f"--input {text}：{name} 已经是值，不能再有子项",
                )
            )
        tree = inner
    if path[-1] in tree:
        raise InputError(
            Text(
                f"--input {text}: {'.'.join(path)} is given twice; leave one out",
                f"--input {text}：{'.'.join(path)} 给出了两次；请去掉一个",
            )
        )
    tree[path[-1]] = value


def _value(tree: CaseValue | _Tree) -> InputValue:
    if not isinstance(tree, dict):
        return tree
    if all(name.isdecimal() for name in tree):
        return [_value(tree[name]) for name in sorted(tree, key=int)]
    return {name: _value(value) for name, value in tree.items()}


AMP_DTYPES = ("float16", "bfloat16")
DEFAULT_OPTIMIZER = "SGD"


@dataclass(frozen=True)
class ModelRequest:
    """A model, what it is called with, and what is done with it."""

    factory: str  # package.module:name or path/to/file.py:name: a class, a function or a model
    inputs: tuple[str, ...] = ()  # as users write them
    init: str = ""  # keyword arguments of the factory: num_classes=10, pretrained=False
    backward: bool = False
    loss: str = ""  # package:function, called with the output and the positional inputs; "": the model's own
    optimizer: str = ""  # a class of torch.optim; "": none; only with backward
    amp: str = ""  # the dtype of autocast; "": without
    train: bool = False  # as the model is in training: dropout drops, BatchNorm uses the batch
    fake: bool = False  # shapes only
    device: str = ""  # the type of the device that computes; "": the CPU, choosing as a device would

    @property
    def described(self) -> str:
        """The request as a user would write it."""
        words = [self.factory]
        words += [f"--init {_quoted(self.init)}"] if self.init else []
        words += [f"--input {_quoted(text)}" for text in self.inputs]
        words += ["--backward"] if self.backward else ["--train"] if self.train else []
        words += [f"--loss {self.loss}"] if self.loss else []
        words += [f"--optimizer {self.optimizer}"] if self.optimizer else []
        words += [f"--autocast {self.amp}"] if self.amp else []
        words += ["--fake"] if self.fake else []
        return " ".join(words)


def checked(request: ModelRequest) -> ModelRequest:
    """The same, once all that can be checked without the model is right, and with what follows from the rest."""
    split_factory(request.factory, "--model")
    parse_inputs(request.inputs)
    parse_init(request.init)
    if request.loss:
        split_factory(request.loss, "--loss")
    for option, given in (("--loss", request.loss), ("--optimizer", request.optimizer)):
        if given and not request.backward:
            raise InputError(
                Text(
                    f"{option} applies to a training step; add --backward",
                    f"{option} 用于训练步；请加 --backward",
                )
            )
    if request.amp and request.amp not in AMP_DTYPES:
        raise InputError(
            Text(
                f"--autocast {request.amp}: autocast computes only in {' or '.join(AMP_DTYPES)}",
                f"--autocast {request.amp}：autocast 只支持 {' 或 '.join(AMP_DTYPES)}",
            )
        )
    if request.fake and request.device:
        raise InputError(
            Text(
                "--fake computes nothing, so it needs no device; leave out --sim or --fake",
                "--fake 不做计算，不需要设备；请去掉 --sim 或 --fake",
            )
        )
    if not request.backward:
        return request
    return replace(request, train=True, optimizer=request.optimizer or DEFAULT_OPTIMIZER)


def split_factory(text: str, option: str) -> tuple[str, str]:
    """The module or file, and the name in it."""
    place, _, name = text.rpartition(":")
    if not place or not all(part.isidentifier() for part in name.split(".")):
        raise InputError(
            Text(
                f"{option} {text}: write package.module:name or path/to/file.py:name, such as "
                "torchvision.models:resnet50",
                f"{option} {text}：请写成 package.module:name 或 path/to/file.py:name，例如 "
                "torchvision.models:resnet50",
            )
        )
    if not is_file(place) and not all(part.isidentifier() for part in place.split(".")):
        raise InputError(
            Text(
                f"{option} {text}: {place} is neither a module name nor a .py file",
                f"{option} {text}：{place} 既不是模块名，也不是 .py 文件",
            )
        )
    return place, name


def is_file(place: str) -> bool:
    """Whether a factory lies in a file that is named by its path."""
    return place.endswith(".py")


def parse_init(text: str) -> dict[str, object]:
    """Keyword arguments, as Python writes them."""
    try:
        call = ast.parse(f"_({text}\n)", mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args
        found: dict[str, object] = {}
        for keyword in call.keywords:
            assert keyword.arg is not None  # **
            found[keyword.arg] = ast.literal_eval(keyword.value)
        return found
    except (SyntaxError, ValueError, AssertionError, MemoryError, RecursionError):
        raise InputError(
            Text(
                f"--init {text}: write keyword arguments with plain values, such as num_classes=10, "
                "pretrained=False",
                f"--init {text}：请写带普通值的关键字参数，例如 num_classes=10, pretrained=False",
            )
        ) from None


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or "(" in text else text

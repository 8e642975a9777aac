"""Where the adapter's own operators are found, and what is there for those that the simulator does not compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch

_LINES = Path(__file__).with_name("operator_names.txt").read_text("utf-8").splitlines()
OPERATOR_NAMES = frozenset(name for line in _LINES if not line.startswith("#") for name in line.split())
# methods of tensors in older adapters; today's refuse them in these words
_OLD_METHODS = (
    "copy_memory_",
    "npu_confusion_transpose",
    "npu_dtype_cast",
    "npu_dtype_cast_",
    "npu_format_cast",
    "npu_format_cast_",
    "one_",
)


def simulated(areas: tuple[ModuleType, ...]) -> dict[str, Callable[..., Any]]:
    """The operators that modules compute: each is a function under the operator's name."""
    return {name: value for area in areas for name, value in vars(area).items() if name in OPERATOR_NAMES}


def not_simulated(name: str) -> Callable[..., NoReturn] | None:
    """A function that says that an operator of the adapter is not simulated; None if the adapter has none such."""
    if name not in OPERATOR_NAMES:
        return None

    def operator(*_args: Any, **_settings: Any) -> NoReturn:
        raise NotImplementedError(
            f"torch_npu.{name} exists on the card, but the simulator does not compute it; use torch's own "
            "operators for this part when you run with --sim"
        )

    operator.__name__ = operator.__qualname__ = name
    return operator


def publish(operators: Mapping[str, Callable[..., Any]]) -> None:
    """Put operators where the adapter puts them: torch.ops.npu; under torch and Tensor they only say so."""
    for name in OPERATOR_NAMES:
        setattr(torch.ops.npu, name, operators.get(name) or not_simulated(name))
        if not hasattr(torch, name):
            setattr(torch, name, _moved("torch", name))
    for name in _OLD_METHODS:
        setattr(torch.Tensor, name, _moved("torch.Tensor", name))


def _moved(place: str, name: str) -> Callable[..., NoReturn]:
    def refuse(*_args: Any, **_settings: Any) -> NoReturn:
        raise RuntimeError(
            f"{place}.{name} is deprecated and will be removed in future version. Use torch_npu.{name} instead."
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse

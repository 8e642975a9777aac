"""Puts other kernels in the place of a device's: for one call of an operator, or for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


@dataclass
class Made:
    """A call that the device has made, on the host: a kernel answers with another result."""

    func: Any
    args: tuple[Any, ...]  # as they were before the call
    kwargs: dict[str, Any]
    result: torch.Tensor  # the one that is replaced
    output: int
    earlier: list[torch.Tensor] = field(default_factory=list)  # what calls before it gave

    def again(self, dtype: torch.dtype, *changed: Any, **options: Any) -> Any:
        """The call in another dtype; `changed` are its first arguments, `options` some named ones."""
        args, kwargs = tree_map_only(
            torch.Tensor,
            lambda each: each.to(dtype) if each.is_floating_point() else each.clone(),
            ((*changed, *self.args[len(changed) :]), {**self.kwargs, **options}),
        )
        result = self.func(*args, **kwargs)
        return self.chosen(result, args)

    def chosen(self, result: Any, args: tuple[Any, ...]) -> torch.Tensor:
        return _outputs(self.func, args, result)[self.output]


Kernel = Callable[[Made], torch.Tensor]


class Kernels(TorchDispatchMode):
    """`nth` counts the calls of the operator, from 1; 0: all of them. `output` counts results, then arguments that
    were written to."""

    def __init__(self, operator: str, kernel: Kernel, nth: int = 0, output: int = 0) -> None:
        super().__init__()
        self._operator, self._kernel, self._nth, self._output = operator, kernel, nth, output
        self._calls = 0
        self._earlier: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.name().partition("::")[2] != self._operator or not _computes(func, args, kwargs):
            return func(*args, **kwargs)
        self._calls += 1
        before = tree_map_only(torch.Tensor, lambda each: each.to("cpu", copy=True), (args, kwargs))
        result = func(*args, **kwargs)
        if self._nth in (0, self._calls):
            outputs = _outputs(func, args, result)
            for place in range(len(outputs)) if self._nth == 0 else [self._output]:
                is_number = outputs[place] is not None and outputs[place].is_floating_point()
                if is_number or (self._nth and outputs[place] is not None):
                    made = Made(
                        func, *before, outputs[place].cpu().contiguous().clone(), place, self._earlier
                    )
                    outputs[place].copy_(self._kernel(made))
        else:
            first = _outputs(func, args, result)[0]
            self._earlier += [] if first is None else [first.to("cpu", copy=True)]
        return result


def _computes(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """A replay makes copies of its own; casts are the program's."""
    is_cast = kwargs.get("dtype") == torch.bfloat16 != args[0].dtype
    return func.name() != "aten::_to_copy" or is_cast


def _outputs(func: Any, args: tuple[Any, ...], result: Any) -> list[Any]:
    """Results, then what was written to and is not among them."""
    if result is None:
        return list(args[0]) + [
            each for each in args[1:3] if "found_inf" in str(func._schema) and torch.is_tensor(each)
        ]
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    if func.name() == "aten::native_batch_norm":
        found += [args[3], args[4]]
    return found

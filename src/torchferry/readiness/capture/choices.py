"""Lets PyTorch choose on the CPU what it chooses on an accelerator, so that a capture shows what a device will see."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _python_dispatch
from torch.utils._device import _device_constructors

from torchferry.observe.modes import active_mode
from torchferry.observe.patching import Patches
from torchferry.readiness.capture.folding import tensors_among
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.capture.undecided import Owner, Undecided, is_the_hosts, owner_of, set_owner

_PYTORCH = f"{Path(torch.__file__).parent}{os.sep}"
_MOVES = frozenset({torch.Tensor.to, torch.Tensor.cuda})


class HostTensors(TorchFunctionMode):
    """Tells a capturing mode which tensors would stay on the host if the program ran on a device.

    A tensor that a step makes without naming a device, or that the program fetches with `.cpu()`, is the host's, and so
    is all that is computed from such tensors alone: lengths of sequences, the step counters of optimizers, grids that
    are moved later. `.to(device)` and `.cuda()` make them the device's. One that is made with device="cpu" is undecided
    until it is moved, or meets a tensor of the device.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cpu:
            tensor, result = args[0], func(*args, **kwargs)
            if result is tensor and not is_the_hosts(tensor):
                # a tensor object of its own: the program may go on with the first
                result = tensor.view_as(tensor)
            set_owner([result], True)
            return result
        if func in _MOVES and owner_of(args[0]) is not False:
            return _moved(args[0], func(*args, **kwargs), (*args[1:], *kwargs.values()))
        if func in _device_constructors():
            return _made(func, args, kwargs, _owner(kwargs.get("device"), sys._getframe(1)))
        return func(*args, **kwargs)


def _owner(device: Any, caller: FrameType) -> Owner:
    """A program's `device` is "cpu" here as well; PyTorch's own code writes it where it means it, and otherwise has
    the device of a tensor."""
    if device is None or (
        isinstance(device, str) and device == "cpu" and caller.f_code.co_filename.startswith(_PYTORCH)
    ):
        return True
    return Undecided() if torch.device(device).type == "cpu" else False


def _made(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Owner) -> Any:
    mode = active_mode(CapturingMode)
    given = next(tensors_among((*args, *kwargs.values())), None)
    if mode is None or not mode.where.has_begun or given is not None:  # `torch.as_tensor(x)` stays where x is
        return func(*args, **kwargs)
    before = mode.is_loading_data, mode.making
    mode.is_loading_data = owner is True or mode.is_loading_data
    mode.making = owner if isinstance(owner, Undecided) else None
    try:
        result = func(*args, **kwargs)
    finally:
        mode.is_loading_data, mode.making = before
    set_owner([result], owner)
    return result


def _moved(tensor: torch.Tensor, result: torch.Tensor, given: Iterable[Any]) -> torch.Tensor:
    """A cast alone leaves a tensor where it is, and `.to(other)` may be meant as one where the place is undecided."""
    if isinstance(owner_of(tensor), Undecided):
        given = [value for value in given if not isinstance(value, torch.Tensor)]
    if not any(map(_is_of_device, given)):
        return result
    result = tensor.view_as(tensor) if result is tensor else result
    mode = active_mode(CapturingMode)
    if mode is not None:
        mode.settle_on_host(tensor)
    set_owner([result], False)
    return result


def _is_of_device(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not is_the_hosts(value)
    return isinstance(value, (torch.device, str)) or type(value) is int


_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CELLS = ("lstm_cell", "gru_cell")
_WEIGHTS_OF_PACKED = 3  # the position of the weights where a layer gets a packed sequence


@contextmanager
def as_on_device() -> Iterator[None]:
    """Let PyTorch choose as on a device, and tell the host's tensors from the device's."""
    choices = DeviceChoices()
    try:
        choices.make()
        with HostTensors():
            yield
    finally:
        choices.take_back()


class DeviceChoices:
    """Optimizers work on lists of tensors (`_foreach_*`), dropout and recurrent layers are one operator each, and
    one_hot does not look at its labels, as on every accelerator; until it is taken back."""

    def __init__(self) -> None:
        self._patches = Patches()

    def make(self) -> None:
        """Choose so from now on."""
        optimizer = importlib.import_module("torch.optim.optimizer")  # not an attribute of its package
        name = "_get_foreach_kernels_supported_devices"
        supported = getattr(optimizer, name, None)
        if supported is not None:
            self._patches.replace(optimizer, name, lambda: [*supported(), "cpu"])
        # in the dispatcher, because attention calls dropout from within PyTorch
        library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        self._patches.add(library._destroy)
        for key in ("AutogradCPU", "AutogradMeta"):  # fake tensors go by the second
            library.impl("dropout", _dropout, key)
        functions: Any = torch._VF
        for name in (*_LAYERS, *_CELLS):
            self._patches.replace(functions, name, _whole(name, getattr(functions, name)))
        functional: Any = torch.nn.functional
        self._patches.replace(functional, "one_hot", _without_looking(functional.one_hot))

    def take_back(self) -> None:
        """Choose as on a CPU again."""
        self._patches.take_back()


def _without_looking(original: Any) -> Any:
    """one_hot that takes its labels for right ones where the number of classes is said."""

    def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        if num_classes < 1 or not tensor.numel() or tensor.dtype is not torch.int64:
            return original(tensor, num_classes)  # type: ignore[no-any-return]
        made = torch.zeros(*tensor.shape, num_classes, dtype=torch.int64, device=tensor.device)
        return made.scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def _dropout(tensor: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    if not train or not 0 < p < 1 or not tensor.numel() or not tensor.is_floating_point():
        key = torch._C.DispatchKey.CompositeImplicitAutograd
        return torch.ops.aten.dropout.default._op_dk(key, tensor, p, train)  # type: ignore[no-any-return]
    return torch.native_dropout(tensor, p, train)[0]


class _Input(torch.autograd.Function):
    """A tensor that enters a layer. Inside, each step of a sequence adds to its gradient; outside, that is one."""

    @staticmethod
    def forward(_context: Any, tensor: torch.Tensor) -> torch.Tensor:
        with _python_dispatch._disable_current_modes():  # and no more: fake tensors have to stay fake
            return tensor.detach()

    @staticmethod
    def backward(_context: Any, *gradients: Any) -> Any:
        return gradients[0]


def _as_input(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(map(_as_input, value))
    if isinstance(value, torch.Tensor) and value.requires_grad:
        return _Input.apply(value)  # type: ignore[no-untyped-call]
    return value


def _whole(name: str, plain: Any) -> Any:
    """A recurrent layer as one operator: the CPU makes it of others than devices do, some of which only the CPU has."""
    operators = getattr(torch.ops.aten, name)

    def layer(*args: Any) -> Any:
        mode = active_mode(CapturingMode)
        if mode is None:
            return plain(*args)
        args = tuple(map(_as_input, args))
        if name in _CELLS:
            return mode.take_whole(operators.default, plain, args)
        is_packed = isinstance(args[_WEIGHTS_OF_PACKED], (list, tuple))
        return mode.take_whole(operators.data if is_packed else operators.input, plain, args)

    return layer

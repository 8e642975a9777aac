"""Lets PyTorch choose on the CPU what it chooses on an accelerator, so that a capture shows what a device will see."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _python_dispatch

from torchferry.observe.modes import active_mode
from torchferry.observe.patching import Patches
from torchferry.readiness.capture.choices import HostTensors
from torchferry.readiness.capture.mode import CapturingMode

_LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_CELLS = ("lstm_cell", "gru_cell")
_WEIGHTS_OF_PACKED = 3  # the position of the weights where a layer gets a packed sequence


@contextmanager
def as_on_device() -> Iterator[None]:
    """Optimizers work on lists of tensors (`_foreach_*`), dropout and recurrent layers are one operator each, and
    one_hot does not look at its labels, as on every accelerator."""
    choices = DeviceChoices()
    try:
        choices.make()
        with HostTensors():
            yield
    finally:
        choices.take_back()


class DeviceChoices:
    """The choices; they can be taken back."""

    def __init__(self) -> None:
        self._patches = Patches()

    def make(self) -> None:
        """From now on."""
        self._list_cpu_among_foreach_devices()
        self._fuse_dropout()
        self._take_recurrent_layers_whole()
        self._leave_labels_unchecked()

    def take_back(self) -> None:
        """As it was."""
        self._patches.take_back()

    def _list_cpu_among_foreach_devices(self) -> None:
        optimizer = importlib.import_module("torch.optim.optimizer")  # not an attribute of its package
        original = getattr(optimizer, "_get_foreach_kernels_supported_devices", None)
        if original is not None:
            name = "_get_foreach_kernels_supported_devices"
            self._patches.replace(optimizer, name, lambda: [*original(), "cpu"])

    def _fuse_dropout(self) -> None:
        """In the dispatcher, because attention calls it from within PyTorch."""
        library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        self._patches.add(library._destroy)
        for key in ("AutogradCPU", "AutogradMeta"):  # fake tensors go by the second
            library.impl("dropout", _dropout, key)

    def _take_recurrent_layers_whole(self) -> None:
        """The CPU makes them of other operators than devices do, some of which only the CPU has."""
        functions: Any = torch._VF
        for name in (*_LAYERS, *_CELLS):
            self._patches.replace(functions, name, _whole(name, getattr(functions, name)))

    def _leave_labels_unchecked(self) -> None:
        functional: Any = torch.nn.functional
        plain = functional.one_hot

        def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
            if num_classes < 1 or not tensor.numel() or tensor.dtype is not torch.int64:
                return plain(tensor, num_classes)  # type: ignore[no-any-return]
            made = torch.zeros(*tensor.shape, num_classes, dtype=torch.int64, device=tensor.device)
            return made.scatter_(-1, tensor.unsqueeze(-1), 1)

        self._patches.replace(functional, "one_hot", one_hot)


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

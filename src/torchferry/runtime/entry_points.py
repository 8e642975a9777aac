"""The functions written in C that read a device from a string or a number: what makes and what moves tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]
from torch.utils._device import _device_constructors

from torchferry.runtime.host.devices import is_cuda
from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import CUDA, LayerTarget

_LIKE = ("empty_like", "full_like", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like")
_OTHERS = ("from_file", "asarray", "normal")
_NEW = ("new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")
# What takes a device as its first argument after the tensor.
_MOVING = ("to", "pin_memory", "is_pinned")
_WORDS = (str, int)
Function = Callable[..., Any]


def changes(target: LayerTarget) -> Iterator[Change]:
    """Everything that makes a tensor, then everything that moves one."""
    for name, owner, function in _factories():
        yield _patch(name, owner, of_keyword(function))
    for name in _NEW:
        method = getattr(torch.Tensor, name, None)
        if method is not None:
            yield _patch(f"torch.Tensor.{name}", torch.Tensor, of_keyword(method))
    for name in _MOVING:
        yield _patch(f"torch.Tensor.{name}", torch.Tensor, of_first(getattr(torch.Tensor, name)))
    parse = torch._C._nn._parse_to  # the arguments of Module.to and of packed sequences
    yield Patch(
        "torch.nn.Module.to", torch._C._nn, "_parse_to", of_module(parse), 'accepts "cuda:1" and 1 as devices'
    )
    yield _cuda_method(target)
    yield lazy_parameters()
    own = target.vendor.is_attribute if target.vendor else ""
    flag = inspect.getattr_static(torch.Tensor, own, None) if own else property(lambda _: True)
    if flag is None:  # a plugin that names no attribute of its own
        flag = property(lambda tensor: tensor.device.type == target.device_type)
    means = f"torch.Tensor.{own}" if own else "true"
    yield Patch("torch.Tensor.is_cuda", torch.Tensor, "is_cuda", flag, means)
    if not target.is_reference:  # there torch itself has to see that storages are the host's
        flag = property(lambda storage: storage.device.type == target.device_type)
        for kind in (torch.UntypedStorage, torch.TypedStorage):
            yield Patch(f"torch.{kind.__name__}.is_cuda", kind, "is_cuda", flag, f"on {target.device_type}")


def wrapped_factories() -> Iterator[tuple[str, Function]]:
    """The factories of torch as they are now, with their operators' names, for a compiler that knows them by identity."""
    return ((name.rpartition(".")[2], function) for name, owner, function in _factories() if owner is torch)


def _factories() -> Iterator[tuple[str, Any, Function]]:
    # The set of constructors is remembered by torch at the first call: it must hold the originals, since it is the
    # originals that torch.set_default_device sees being called.
    names = {function.__name__ for function in _device_constructors()}
    for name in sorted(names.union(_LIKE, _OTHERS)):
        for prefix, owner in (("torch.", torch), ("torch.fft.", torch.fft), ("torch.nested.", torch.nested)):
            short = name.removeprefix("fft_")
            function = vars(owner).get(short)
            if inspect.isroutine(function):
                yield prefix + short, owner, function


def _patch(name: str, owner: Any, function: Function) -> Patch:
    return Patch(name, owner, name.rpartition(".")[2], function, 'accepts "cuda:1" and 1 as devices')


def of_keyword(function: Function) -> Function:
    """The function, which takes CUDA's words as `device=`. It runs often: one look at the arguments, no more."""
    device = torch.device

    @functools.wraps(function)
    def made(*args: Any, **settings: Any) -> Any:
        if "device" in settings:
            said = settings["device"]
            if isinstance(said, _WORDS):
                settings["device"] = device(said)
        return function(*args, **settings)

    return made


def of_first(method: Function) -> Function:
    """The method, which takes CUDA's words as its first argument or as `device=`."""
    device = torch.device

    @functools.wraps(method)
    def moved(tensor: Any, *args: Any, **settings: Any) -> Any:
        if args:
            said = args[0]
            if isinstance(said, _WORDS):
                return method(tensor, device(said), *args[1:], **settings)
        elif "device" in settings:
            said = settings["device"]
            if isinstance(said, _WORDS):
                settings["device"] = device(said)
        return method(tensor, *args, **settings)

    return moved


def of_module(parse: Function) -> Function:
    """As of_first, for a function that takes the arguments of `to` alone."""
    method = of_first(lambda _, *args, **settings: parse(*args, **settings))

    @functools.wraps(parse)
    def parsed(*args: Any, **settings: Any) -> Any:
        return method(None, *args, **settings)

    return parsed


def _cuda_method(target: LayerTarget) -> Patch:
    device, current = torch.device, torch.device(CUDA)

    def cuda(
        self: torch.Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: torch.memory_format = torch.preserve_format,
    ) -> torch.Tensor:
        place = current if device is None else place_of(device)
        return self.to(place, non_blocking=non_blocking, memory_format=memory_format)

    def place_of(said: Any) -> torch.device:
        place = said if isinstance(said, device) else device(said)
        if place.type != target.device_type or (target.is_reference and not is_cuda(place)):
            raise RuntimeError(f"Invalid device, must be a CUDA device: {said}")
        return place

    return Patch("torch.Tensor.cuda", torch.Tensor, "cuda", cuda, f"moves to {target.device_type}")


def lazy_parameters() -> Patch:
    """A parameter without a shape can be moved, but only by functions that it knows by their identity."""
    known = "_allowed_methods"
    allowed = [*getattr(UninitializedTensorMixin, known), torch.Tensor.cuda, torch.Tensor.to]
    name = f"torch.nn.parameter.UninitializedTensorMixin.{known}"
    return Patch(
        name, UninitializedTensorMixin, known, allowed, "uses the redirected Tensor.cuda and Tensor.to"
    )

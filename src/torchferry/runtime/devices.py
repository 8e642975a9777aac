"""`torch.device`: made of CUDA's names it is the target's device, and its type answers to both names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch

from torchferry.runtime.c_types import Constructor
from torchferry.runtime.host import presented
from torchferry.runtime.patches import Action, Change, Patch
from torchferry.runtime.settings import TypeChecks
from torchferry.runtime.target import CUDA, LayerTarget, TwoNames

# Modules of torch that read the type only to refuse the CPU: SyncBatchNorm's, whose operators the reference has.
_REFUSE_THE_CPU = ("torch.nn.modules.batchnorm",)


def changes(target: LayerTarget) -> Iterator[Change]:
    """The changes of all that makes a device."""
    yield _constructor(torch.device, target, _of_device)
    yield _constructor(torch.Generator, target, _of_first_argument)
    for name in ("Stream", "Event"):
        made = getattr(torch, name, None)
        if made is not None:
            yield _constructor(made, target, _of_first_argument)

    def storage(cls: type, *args: Any, **settings: Any) -> Any:
        """torch.UntypedStorage(8, device="cuda:1"): a class of Python's over one that is written in C."""
        if isinstance(settings.get("device"), str):
            settings["device"] = target.text(settings["device"])
        return torch._C.StorageBase.__new__(cls, *args, **settings)

    means = f'device="cuda:1" is {target.text("cuda:1")}'
    yield Patch("torch.UntypedStorage", torch.UntypedStorage, "__new__", staticmethod(storage), means)
    if target.is_reference:
        yield from presented.device_changes(target, Knowing(target).__getitem__)
    elif target.settings.type_checks is TypeChecks.BOTH:
        yield _type(target)


def _constructor(owner: type, target: LayerTarget, translate: Any) -> Change:
    constructor = Constructor(owner)
    make = translate(constructor, target)
    name = f"torch.{owner.__name__}"
    return Action(
        f"{name}(...)",
        f'{name}("cuda:1") is {target.text("cuda:1")}',
        lambda: constructor.replace(make),
        constructor.restore,
    )


def _of_device(constructor: Constructor, target: LayerTarget) -> Any:
    """torch.device(...) in all its forms; those of one argument are remembered."""
    known: dict[Any, torch.device] = {}
    original = constructor.original

    def without_number(text: str) -> str:
        """The CPU with a number is the CPU; in a reference, where a number makes it one of CUDA's, without it."""
        return "cpu" if target.is_reference and text.startswith("cpu:") else text

    def make(cls: type, *args: Any, **settings: Any) -> Any:
        if len(args) == 1 and not settings:
            first = args[0]
            kind = first.__class__
            if kind is str or kind is int:
                if first not in known:
                    said = target.text(without_number(first)) if kind is str else target.indexed(first)
                    known[first] = original(cls, (said,), {})
                return known[first]
            # A word of another class, an Enum's for one, says the same.
            return make(cls, str.__str__(first)) if isinstance(first, str) else original(cls, args, settings)
        if args[:1] == ("cpu",) and target.is_reference:
            return make(cls, "cpu")
        kind_said = args[0] if args else settings.get("type")
        if kind_said != CUDA or not isinstance(kind_said, str):
            return original(cls, args, settings)
        index = args[1] if len(args) > 1 else settings.get("index")
        if index is None:
            return make(cls, CUDA)
        return make(cls, f"{CUDA}:{index}") if index >= 0 else original(cls, (target.device_type, index), {})

    return make


def _of_first_argument(constructor: Constructor, target: LayerTarget) -> Any:
    """torch.Generator("cuda"), torch.Stream(device="cuda:1")."""

    def make(cls: type, *args: Any, **settings: Any) -> Any:
        if args and isinstance(args[0], str):
            args = (target.text(args[0]), *args[1:])
        if isinstance(settings.get("device"), str):
            settings["device"] = target.text(settings["device"])
        return constructor.original(cls, args, settings)

    return make


def _type(target: LayerTarget) -> Patch:
    """The `type` of a device, which equals CUDA's as well for all code but torch's own and the vendor's.

    torch itself has to take the ways that it has for the vendor's device; those for CUDA end in CUDA's library.
    """
    read: Any = vars(torch.device)["type"].__get__
    own, both = target.device_type, TwoNames(target.device_type, CUDA)
    knows = Knowing(target)

    def type_of(device: torch.device) -> str:
        name: str = read(device)
        if name != own or knows[sys._getframe(1).f_globals.get("__name__", "")]:
            return name
        return both

    return Patch("torch.device.type", torch.device, "type", property(type_of), f'"{own}" that equals "cuda"')


class Knowing(dict[str, bool]):
    """Whether a module knows what the device is: torch's, the plugin's and ours do. Worked out once for each."""

    def __init__(self, target: LayerTarget) -> None:
        plugin = target.vendor.plugin if target.vendor else ""
        self._packages = {"torch", "torchferry", plugin} - {""}
        self._except = _REFUSE_THE_CPU if target.is_reference else ()

    def __missing__(self, module: str) -> bool:
        package, _, rest = module.partition(".")
        # torch.compile reads constants on behalf of the program that it captures
        knows = package in self._packages and not rest.startswith("_dynamo.") and module not in self._except
        self[module] = knows
        return knows

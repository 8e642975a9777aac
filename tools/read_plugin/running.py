"""Reads the plugin that runs in this process, and compares it with the vendor's tables."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torchferry.building.toolchain import find_torch
from torchferry.operators import native_functions
from torchferry.vendors.model import Support, Vendor
from torchferry.vendors.ops import load_ops

from .plugin import Plugin

_ATEN = "aten::"
_CUDA = "torch.cuda."
# What is there while a program uses it, and what is no name of the module but of its instances.
_NOT_LOOKED_UP = ("torch.nn.", "torch.Tensor.", "torch.UntypedStorage.", "torch.TypedStorage.")


def read(vendor: Vendor) -> Plugin:
    """The tables of the plugin in this process."""
    import torch

    module = getattr(torch, vendor.device_type)
    operators = _registered("PrivateUse1")
    return Plugin(
        torch=torch.__version__,
        version=sys.modules[vendor.plugin].__version__,
        operators=tuple(name.removeprefix(_ATEN) for name in operators if name.startswith(_ATEN)),
        custom=tuple(name for name in operators if not name.startswith((_ATEN, "c10d::"))),
        autograd=_registered("AutogradPrivateUse1"),
        autocast=_registered("AutocastPrivateUse1"),
        names=tuple(name for name in sorted(dir(module)) if not name.startswith("_")),
    )


def _registered(key: str) -> tuple[str, ...]:
    import torch

    return tuple(sorted(torch._C._dispatch_get_registrations_for_dispatch_key(key)))


def differences(vendor: Vendor, plugin: Plugin) -> list[str]:
    """Where the vendor's tables and the plugin do not agree, in words."""
    return [*operators_that_differ(vendor, plugin), *_names_that_differ(vendor)]


def operators_that_differ(vendor: Vendor, plugin: Plugin) -> Iterator[str]:
    """The table lists what the public registration has; the plugin registers helpers of its own beside it."""
    release = ".".join(plugin.torch.split(".")[:2])
    ops = load_ops(Path(vendor.folder))
    listed = {name for name in ops.kernels if ops.has_kernel(name, release)}
    yield from (f"{name}: in the table, not registered" for name in sorted(listed - set(plugin.operators)))
    known = _of_pytorch(plugin.operators)
    yield from (f"{name}: registered, not in the table" for name in sorted(known - listed))


def _of_pytorch(names: Iterable[str]) -> set[str]:
    """The operators that PyTorch itself has under these names: not those that the plugin adds to its library."""
    text = (find_torch().torchgen / native_functions.LIST_IN_TORCHGEN).read_text("utf-8")
    return set(names) & set(native_functions.read_native_functions(text))


def _names_that_differ(vendor: Vendor) -> Iterator[str]:
    """A name that the table calls available is there, one that it calls unsupported is not."""
    for name, api in sorted(vendor.apis.items()):
        if name.startswith(_NOT_LOOKED_UP) or api.support is Support.UNKNOWN:
            continue
        its = api.name or name.replace(_CUDA, f"{vendor.torch_module}.")
        if api.support is Support.UNSUPPORTED:
            if name.startswith(_CUDA) and _is_there(its):
                yield f"{name}: unsupported in the table, and {its} is there"
        elif not _is_there(its):
            yield f"{name}: available in the table, and {its} is not there"


def _is_there(dotted: str) -> bool:
    """Whether a dotted name means something, importing what must be."""
    parts = dotted.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return False
        found = getattr(found, part, None)
    return found is not None

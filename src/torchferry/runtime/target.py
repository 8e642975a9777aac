"""The device that CUDA's names stand for: the vendor's plugin, and CUDA's words put into the device's own."""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from torchferry.errors import RunError
from torchferry.runtime.host.devices import Placement
from torchferry.runtime.patches import Action, Change
from torchferry.runtime.settings import LayerSettings
from torchferry.text import Text
from torchferry.vendors.model import Vendor

CUDA = "cuda"
_NCCL = "nccl"
_TYPE_PREFIX = "torch.cuda."


@dataclass(frozen=True)
class LayerTarget:
    """What the layer needs to know of a device."""

    company: str
    device_type: str  # npu
    module: ModuleType  # torch.npu
    torch_module: str  # "torch.npu"
    backend: str  # of process groups
    settings: LayerSettings
    vendor: Vendor | None = None  # None: the CPU, which stands in as a reference
    unnumbered: str = ""  # what "cuda" without a number is written as, "" as the device type
    placement: Placement | None = None  # of the reference: what knows which tensors would be on a device

    @property
    def is_reference(self) -> bool:
        """Whether CUDA's names mean the CPU."""
        return self.vendor is None

    def text(self, text: str) -> str:
        """A device in words: cuda:1 -> npu:1. What names no CUDA device comes back as it is."""
        if text != CUDA and not text.startswith("cuda:"):
            return text
        return self.unnumbered if self.unnumbered and text == CUDA else self.device_type + text[len(CUDA) :]

    def indexed(self, index: int) -> str:
        """A device that is named by its number alone."""
        return f"{self.device_type}:{index}"

    def device_type_of(self, name: Any) -> Any:
        """The type of a device, where an API wants a type: cuda -> npu."""
        return self.device_type if isinstance(name, str) and name == CUDA else name

    def tensor_type(self, name: Any) -> Any:
        """A typed tensor by its name: torch.cuda.FloatTensor -> torch.npu.FloatTensor."""
        if isinstance(name, str) and str.startswith(name, _TYPE_PREFIX):
            return f"{self.torch_module}.{name[len(_TYPE_PREFIX) :]}"
        return name

    def backends(self, value: Any) -> Any:
        """The backend of a process group: nccl, or cpu:gloo,cuda:nccl. Where CUDA is the CPU, CUDA's serves both."""
        if not isinstance(value, str) or not {_NCCL, CUDA} & set(re.split("[:,]", value.lower())):
            return value
        entries = [entry.strip().rpartition(":") for entry in value.lower().split(",")]
        by_device: dict[str, str] = {}
        for device, colon, name in sorted(entries, key=lambda entry: entry[0] == CUDA):
            own = self.backend if name == _NCCL or (device == CUDA and self.is_reference) else name
            by_device[f"{self.device_type_of(device)}{colon}"] = own
        return ",".join(f"{device}{name}" for device, name in by_device.items())


# Words that mean two things: `device.type` is "npu", and equals "cuda" as well.


class TwoNames(str):
    """A string that also equals another one, so that code which asks for CUDA and code which knows the vendor agree.

    It prints, hashes and looks up as its own text.
    """

    also: str

    def __new__(cls, text: str, also: str) -> TwoNames:
        made = super().__new__(cls, text)
        made.also = also
        return made

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or str.__eq__(self.also, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str) and (str.__contains__(self, part) or part in self.also)

    def startswith(self, *where: Any) -> bool:
        """Whether either name starts so."""
        return str.startswith(self, *where) or self.also.startswith(*where)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # a file that is read elsewhere holds a plain string


# Functions whose arguments name CUDA, made to take the target's words.

_DEVICE_TYPES = ("device_type", "device")


def taking_device_type(
    function: Callable[..., Any], target: LayerTarget, position: int
) -> Callable[..., Any]:
    """The function, whose argument at a position, or by name, is a device type."""

    @functools.wraps(function)
    def translated(*args: Any, **settings: Any) -> Any:
        if len(args) > position:
            args = (*args[:position], target.device_type_of(args[position]), *args[position + 1 :])
        for name in _DEVICE_TYPES:
            if name in settings:
                settings[name] = target.device_type_of(settings[name])
        return function(*args, **settings)

    return translated


def device_module(vendor: Vendor) -> Any:
    """torch.<type>, after the plugin has been imported if it is not there yet."""
    name = vendor.torch_module.rpartition(".")[2]
    if not hasattr(torch, name) and vendor.plugin:
        try:
            importlib.import_module(vendor.plugin)
        except Exception as error:  # a plugin without its driver raises what it likes
            raise RunError(
                Text(
                    f"{vendor.plugin} can't be imported ({error}); install {vendor.company}'s plugin for PyTorch, or "
                    "activate the simulated device first (torchferry.sim.activate, ferry run --sim)",
                    f"无法导入 {vendor.plugin}（{error}）；请安装 {vendor.company} 的 PyTorch 插件，"
                    "或先启用模拟设备（torchferry.sim.activate、ferry run --sim）",
                )
            ) from error
    module = getattr(torch, name, None)
    if module is None:
        raise RunError(
            Text(
                f"{vendor.name}: this PyTorch has no {vendor.torch_module}; use a PyTorch with this device",
                f"{vendor.name}：当前 PyTorch 没有 {vendor.torch_module}；请使用支持该设备的 PyTorch",
            )
        )
    return module


def migration_changes(target: LayerTarget) -> Iterator[Change]:
    """A program's own `import torch_npu.contrib.transfer_to_npu` finds an empty module: the layer does its work."""
    for name in target.vendor.migrations if target.vendor else ():
        if name not in sys.modules:
            yield _stand_in(name)


def _stand_in(name: str) -> Change:
    module = ModuleType(
        name, "Does nothing: the runtime layer has already redirected CUDA's names to this device."
    )
    parent, _, leaf = name.rpartition(".")

    def put() -> None:
        sys.modules[name] = module
        if parent in sys.modules:
            setattr(sys.modules[parent], leaf, module)

    def take_back() -> None:
        if sys.modules.get(name) is module:
            del sys.modules[name]
        if parent in sys.modules and vars(sys.modules[parent]).get(leaf) is module:
            delattr(sys.modules[parent], leaf)

    return Action(name, "an empty module", put, take_back)

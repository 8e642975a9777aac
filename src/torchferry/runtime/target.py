"""The device that CUDA's names stand for, and CUDA's words put into its own."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from torchferry.runtime.settings import LayerSettings
from torchferry.vendors.model import Vendor

CUDA = "cuda"
_NCCL = "nccl"
_TYPE_PREFIX = "torch.cuda."


@dataclass(frozen=True)
class Target:
    """What the layer needs to know of a device."""

    company: str
    device_type: str  # npu
    module: ModuleType  # torch.npu
    torch_module: str  # "torch.npu"
    backend: str  # of process groups
    settings: LayerSettings
    vendor: Vendor | None = None  # None: the CPU, which stands in as a reference
    only_device: str = ""  # the device that all of CUDA's are, "" each is one of its own

    @property
    def is_reference(self) -> bool:
        """Whether CUDA's names mean the CPU."""
        return self.vendor is None

    def text(self, text: str) -> str:
        """A device in words: cuda:1 -> npu:1. What names no CUDA device comes back as it is."""
        if text != CUDA and not text.startswith("cuda:"):
            return text
        return self.only_device or self.device_type + text[len(CUDA) :]

    def indexed(self, index: int) -> str:
        """A device that is named by its number alone."""
        return self.only_device or f"{self.device_type}:{index}"

    def device_type_of(self, name: Any) -> Any:
        """The type of a device, where an API wants a type: cuda -> npu."""
        return self.device_type if isinstance(name, str) and name == CUDA else name

    def tensor_type(self, name: Any) -> Any:
        """A typed tensor by its name: torch.cuda.FloatTensor -> torch.npu.FloatTensor."""
        if isinstance(name, str) and str.startswith(name, _TYPE_PREFIX):
            return f"{self.torch_module}.{name[len(_TYPE_PREFIX) :]}"
        return name

    def backends(self, value: Any) -> Any:
        """The backend of a process group: nccl, or cpu:gloo,cuda:nccl."""
        if not isinstance(value, str) or _NCCL not in value.lower():
            return value
        entries = (entry.rpartition(":") for entry in value.lower().split(","))
        return ",".join(
            f"{self.device_type_of(device)}{colon}{self.backend if name == _NCCL else name}"
            for device, colon, name in entries
        )

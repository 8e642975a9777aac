"""Arguments that name CUDA's devices and backend, put into the vendor's words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_DEVICE_ARGUMENTS = frozenset(
    {"device", "device_type", "output_device", "device_id", "device_ids", "map_location", "pin_memory_device"}
    | {"dtype"}  # by this name Tensor.type takes "torch.cuda.FloatTensor"
)
_TYPE_PREFIX = "torch.cuda."


@dataclass(frozen=True)
class Translation:
    """From CUDA's words to a vendor's."""

    device_type: str
    torch_module: str
    backend: str

    def device(self, value: Any) -> Any:
        """A device argument in any form it is given in; what is no CUDA device comes back as it is."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, torch.device):
            return torch.device(self._text(str(value))) if value.type == "cuda" else value
        if isinstance(value, dict):
            # keys are what a file says: CUDA's names if a GPU wrote it, the vendor's if the device did
            entries = {key: self.device(entry) for key, entry in value.items()}
            return entries | {self.device(key): entry for key, entry in entries.items()}
        if isinstance(value, list):
            return [self.device(entry) for entry in value]
        return value

    def _text(self, text: str) -> str:
        if text == "cuda" or text.startswith("cuda:"):
            return self.device_type + text[len("cuda") :]
        if text.startswith(_TYPE_PREFIX):
            return f"{self.torch_module}.{text[len(_TYPE_PREFIX) :]}"
        return text

    def backends(self, value: Any) -> Any:
        """A process group's backend: "nccl", "cuda:nccl,cpu:gloo"."""
        if not isinstance(value, str) or "nccl" not in value.lower() or "://" in value:
            return value
        return value.lower().replace("nccl", self.backend).replace("cuda:", self.device_type + ":")

    def of_arguments(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, which takes CUDA's devices as well."""

        @functools.wraps(function)
        def translated(*args: Any, **settings: Any) -> Any:
            for name in _DEVICE_ARGUMENTS.intersection(settings):
                settings[name] = self.device(settings[name])
            return function(*map(self._positional, args), **settings)

        return translated

    def _positional(self, value: Any) -> Any:
        """Data is never a device: only what can be one is looked at."""
        return self.device(value) if isinstance(value, (str, torch.device)) else value

    def of_backends(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, which takes NCCL for the vendor's backend."""

        @functools.wraps(function)
        def translated(*args: Any, **settings: Any) -> Any:
            if "backend" in settings:
                settings["backend"] = self.backends(settings["backend"])
            if "device_id" in settings:
                settings["device_id"] = self.device(settings["device_id"])
            return function(*map(self.backends, args), **settings)

        return translated

"""What stands under a name of torch.cuda that the device has no counterpart of: an error that says which and why."""

from __future__ import annotations

from typing import Any

from torchferry.runtime.target import Target

NOT_HERE = "not on this device: raises"


class NotOnThisDeviceError(NotImplementedError):
    """A program used something of CUDA's that the device it runs on does not have."""


def absent(name: str, original: Any, target: Target) -> Any:
    """A function or class in the place of `original` that raises when it is used."""
    message = _message(name, target)

    def refuse(*_: Any, **__: Any) -> Any:
        raise NotOnThisDeviceError(message)

    leaf = name.rpartition(".")[2]
    if isinstance(original, type):
        return type(leaf, (), {"__init__": refuse, "__module__": original.__module__, "__doc__": message})
    refuse.__name__ = refuse.__qualname__ = leaf
    refuse.__doc__ = message
    return refuse


def _message(name: str, target: Target) -> str:
    note = target.vendor.api_notes.get(name, "") if target.vendor else ""
    reason = f": {note}" if note else ""
    if target.is_reference:
        return f"{name} has no counterpart on the CPU, which stands for CUDA here; guard the call"
    return (
        f"{name} has no counterpart on {target.company}'s `{target.device_type}` device{reason}; guard the call, or "
        f"replace it (ferry scan --to {target.settings.vendor} lists all such places)"
    )

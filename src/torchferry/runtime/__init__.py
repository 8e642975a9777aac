"""The layer: CUDA's names mean another device in a running process, so that GPU code runs unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchferry.runtime.settings import REFERENCE, LayerSettings, TypeChecks

if TYPE_CHECKING:
    from torchferry.runtime.host.devices import Placement
    from torchferry.runtime.patches import Change

__all__ = ["REFERENCE", "LayerSettings", "TypeChecks", "activate", "changes", "deactivate", "is_active"]


def activate(settings: LayerSettings | str, placement: Placement | None = None) -> None:
    """Let CUDA's names mean a vendor's device: `activate("ascend")`. Doing it again does nothing.

    The device must be there: the vendor's plugin is imported unless it, or the simulated device, is already. Of the
    reference, `placement` knows which tensors would be on a device; without it, all of them may be.
    """
    from torchferry.runtime.layer import activate_layer

    activate_layer(LayerSettings(settings) if isinstance(settings, str) else settings, placement=placement)


def deactivate() -> None:
    """Give all names back what they meant; does nothing when the layer is not active."""
    from torchferry.runtime.layer import deactivate_layer

    deactivate_layer()


def is_active() -> bool:
    """Whether CUDA's names mean another device in this process."""
    from torchferry.runtime.layer import active_target

    return active_target() is not None


def changes() -> tuple[Change, ...]:
    """What the layer has changed in this process, in the order in which it did."""
    from torchferry.runtime.layer import applied_changes

    return applied_changes()

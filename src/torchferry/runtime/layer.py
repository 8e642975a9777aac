"""Applies the whole table of changes to this process, once, and takes it back."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from torchferry.errors import RunError
from torchferry.runtime import (
    compilers,
    cuda_module,
    device_traits,
    devices,
    distributed,
    entry_points,
    environment_variables,
    mixed_precision,
    profiling,
    serialization,
    tensor_copies,
    typed_tensors,
)
from torchferry.runtime.host import differences, presented
from torchferry.runtime.host.devices import UNNUMBERED_TEXT, Placement
from torchferry.runtime.patches import Action, Change, PatchTable, of_imported_libraries
from torchferry.runtime.settings import REFERENCE, LayerSettings
from torchferry.runtime.target import LayerTarget, device_module, migration_changes
from torchferry.settings import set_variables
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor


def _as_on_a_gpu(target: LayerTarget) -> Iterator[Change]:
    """How the reference presents itself to a program; after what makes and moves tensors."""
    if target.is_reference:
        knows = devices.Knowing(target).__getitem__
        yield from presented.tensor_changes(target, knows)
        yield entry_points.lazy_parameters()
        yield from presented.accelerator_changes(target, knows)


# In this order: torch.device comes first, since the others ask it; compilers come after what they have to know.
_AREAS: tuple[Callable[[LayerTarget], Iterator[Change]], ...] = (
    devices.changes,
    entry_points.changes,
    _as_on_a_gpu,
    differences.changes,
    cuda_module.changes,
    tensor_copies.changes,
    mixed_precision.changes,
    distributed.changes,
    distributed.data_parallel_changes,
    serialization.changes,
    typed_tensors.changes,
    profiling.changes,
    device_traits.accelerator_changes,
    compilers.changes,
    device_traits.changes,
    migration_changes,
)


class _Layer:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.table = PatchTable()
        self.target: LayerTarget | None = None


_layer = _Layer()


def activate_layer(
    settings: LayerSettings, vendor: Vendor | None = None, placement: Placement | None = None
) -> None:
    """Apply all changes for a target; the same target again changes nothing, another one is refused.

    The vendor is looked up by its name unless it is given. `placement` is for the reference.
    """
    with _layer.lock:
        now = _layer.target
        if now is not None:
            if now.settings.vendor != settings.vendor:
                raise RunError(
                    Text(
                        f"CUDA already means {now.settings.vendor} in this process; call torchferry.runtime.deactivate() "
                        "first",
                        f"当前进程中 CUDA 已对应 {now.settings.vendor}；请先调用 torchferry.runtime.deactivate()",
                    )
                )
            return
        try:
            _layer.target = _apply_all(_layer.table, settings, vendor, placement)
        except BaseException:
            _layer.table.revert()
            raise


def _apply_all(
    table: PatchTable, settings: LayerSettings, vendor: Vendor | None, placement: Placement | None
) -> LayerTarget:
    if settings.vendor == REFERENCE:
        from torchferry.runtime.host.module import host_module

        module = host_module(settings.reference_devices, placement)
        target = LayerTarget(
            "the CPU",
            "cpu",
            module,
            "torch",
            "gloo",
            settings,
            unnumbered=UNNUMBERED_TEXT,
            placement=placement,
        )
    else:
        vendor = vendor or get_vendor(settings.vendor, tuple(map(Path, settings.vendor_paths)))
        table.apply(environment_variables.changes(vendor))  # a plugin may read them when it is imported
        target = LayerTarget(
            vendor.company,
            vendor.device_type,
            device_module(vendor),
            vendor.torch_module,
            vendor.dist_backend,
            settings,
            vendor,
        )
    for area in _AREAS:
        table.apply(area(target))
    table.apply(of_imported_libraries(dict(table.replaced)))
    table.apply([_told_to_children(settings)])
    return target


def deactivate_layer() -> None:
    """Take all changes back."""
    with _layer.lock:
        _layer.table.revert()
        _layer.target = None


def active_target() -> LayerTarget | None:
    """What CUDA's names mean; None when they are CUDA's own."""
    return _layer.target


def applied_changes() -> tuple[Change, ...]:
    """The table, in the order in which it was applied."""
    return tuple(_layer.table.changes)


def _told_to_children(settings: LayerSettings) -> Change:
    told = {LayerSettings.variable: settings.encode()}
    # Where a program has activated the simulated device itself, its children need one as well.
    simulation = sys.modules.get("torchferry.sim.activation")
    now = simulation.active() if simulation else None
    for name, value in now.for_children().items() if now else ():
        if name not in os.environ:
            told[name] = value
    before = {name: os.environ.get(name) for name in told}
    return Action(
        LayerSettings.variable,
        "inherited by child processes",
        lambda: os.environ.update(told),
        lambda: set_variables(before),
    )

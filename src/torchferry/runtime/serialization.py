"""torch.load: a file that was saved on a GPU is loaded onto the target's device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchferry.runtime.host.devices import shown
from torchferry.runtime.patches import Action, Change, Patch
from torchferry.runtime.settings import TypeChecks
from torchferry.runtime.target import CUDA, LayerTarget, TwoNames

_BEFORE_CUDA = 15  # torch asks the smallest number first; CUDA's own reader has 20
_BEFORE_ALL = 5  # ... and the CPU's 10
_Tag = Callable[[Any], "str | None"]
_Restore = Callable[[Any, str], Any]


def changes(target: LayerTarget) -> Iterator[Change]:
    """One reader of storages, asked before CUDA's; and maps of places that name CUDA's."""
    yield _reader(target)
    load = _load(target)
    for owner in (torch, torch.serialization):
        yield Patch("torch.load", owner, "load", load, f"map_location's cuda:1 is {target.text('cuda:1')}")


def _reader(target: LayerTarget) -> Change:
    serialization = torch.serialization
    tag, restore = _of_reference(target) if target.is_reference else _of_vendor(target)

    first = _BEFORE_ALL if target.is_reference else _BEFORE_CUDA

    def unregister() -> None:
        registry: list[Any] = serialization._package_registry
        registry[:] = [entry for entry in registry if entry[2] is not restore]

    return Action(
        "torch.load",
        f"a file saved on cuda is loaded onto {target.device_type}",
        lambda: serialization.register_package(first, tag, restore),
        unregister,
    )


def _of_vendor(target: LayerTarget) -> tuple[_Tag, _Restore]:
    restore_on: Callable[..., Any] = torch.serialization.default_restore_location

    def tag(storage: Any) -> str | None:
        """A file says the vendor's own location, as without the layer; CUDA's writer would take the type for its own."""
        place = str(storage.device)
        return place if place.partition(":")[0] == target.device_type else None

    def restore(storage: Any, location: str) -> Any:
        if location != CUDA and not location.startswith(f"{CUDA}:"):
            return None
        return restore_on(storage, target.text(location))

    return tag, restore


def _of_reference(target: LayerTarget) -> tuple[_Tag, _Restore]:
    """A file says what it would say on a GPU, and what is read stands where the file, or the map, puts it."""
    placement = target.placement

    def tag(storage: Any) -> str | None:
        if placement is None or storage.device.type != "cpu":
            return None
        index = placement.of_storage(_untyped(storage))
        return None if index is None else f"{CUDA}:{index}"

    def restore(storage: Any, location: str) -> Any:
        kind = location.partition(":")[0]
        if kind not in (CUDA, "cpu"):
            return None
        if kind == CUDA and placement is not None:
            placement.put_storage(_untyped(storage), target.module._get_device_index(location))
        return storage

    return tag, restore


def _untyped(storage: Any) -> Any:
    return storage._untyped_storage if isinstance(storage, torch.TypedStorage) else storage


def _load(target: LayerTarget) -> Callable[..., Any]:
    """A map's keys are what the file says: CUDA's names if a GPU wrote it, the vendor's if the device did."""
    original = torch.load
    both = target.settings.type_checks is TypeChecks.BOTH and not target.is_reference

    @functools.wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **settings: Any) -> Any:
        if isinstance(map_location, dict) and not target.is_reference:
            own = {target.text(key): place for key, place in map_location.items() if isinstance(key, str)}
            map_location = {**own, **map_location}
        elif isinstance(map_location, torch.device) and target.is_reference:
            map_location = shown(map_location)
        elif callable(map_location) and both:
            choose: Callable[..., Any] = map_location

            def map_location(storage: Any, location: str) -> Any:
                """The program's function, to which a place on the device goes by both names: it may ask for CUDA's."""
                kind, colon, index = location.partition(":")
                if kind == target.device_type:
                    location = TwoNames(location, f"{CUDA}{colon}{index}")
                return choose(storage, location)

        return original(f, map_location, *args, **settings)

    return load

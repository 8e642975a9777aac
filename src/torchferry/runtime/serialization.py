"""torch.load: a file that was saved on a GPU is loaded onto the target's device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchferry.runtime.names import TwoNames
from torchferry.runtime.patches import Action, Change, Patch
from torchferry.runtime.settings import TypeChecks
from torchferry.runtime.target import CUDA, Target

_BEFORE_CUDA = 15  # torch asks the smallest number first; CUDA's own reader has 20


def changes(target: Target) -> Iterator[Change]:
    """One reader of storages, asked before CUDA's; and maps of places that name CUDA's."""
    yield _reader(target)
    load = _load(target)
    for owner in (torch, torch.serialization):
        yield Patch("torch.load", owner, "load", load, f"map_location's cuda:1 is {target.text('cuda:1')}")


def _reader(target: Target) -> Change:
    serialization = torch.serialization
    restore_on: Callable[..., Any] = serialization.default_restore_location

    def tag(storage: Any) -> str | None:
        """A file says the vendor's own location, as without the layer; CUDA's writer would take the type for its own."""
        place = str(storage.device)
        if place.partition(":")[0] != target.device_type:
            return None
        return target.device_type if target.only_device else place

    def restore(storage: Any, location: str) -> Any:
        if location != CUDA and not location.startswith(f"{CUDA}:"):
            return None
        place = target.device_type if target.only_device else target.text(location)
        return restore_on(storage, place)

    def unregister() -> None:
        registry: list[Any] = serialization._package_registry
        registry[:] = [entry for entry in registry if entry[2] is not restore]

    return Action(
        "torch.load",
        f"a file that says cuda is read onto {target.device_type}",
        lambda: serialization.register_package(_BEFORE_CUDA, tag, restore),
        unregister,
    )


def _load(target: Target) -> Callable[..., Any]:
    """A map's keys are what the file says: CUDA's names if a GPU wrote it, the vendor's if the device did."""
    original = torch.load
    both = target.settings.type_checks is TypeChecks.BOTH and not target.is_reference

    @functools.wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **settings: Any) -> Any:
        if isinstance(map_location, dict):
            own = {target.text(key): place for key, place in map_location.items() if isinstance(key, str)}
            map_location = {**own, **map_location}
        elif callable(map_location) and both:
            map_location = _told_both(map_location, target)
        return original(f, map_location, *args, **settings)

    return load


def _told_both(choose: Callable[..., Any], target: Target) -> Callable[..., Any]:
    """The program's function, to which a place on the device goes by both names: it may ask for CUDA's."""

    def told(storage: Any, location: str) -> Any:
        kind, colon, index = location.partition(":")
        if kind == target.device_type:
            location = TwoNames(location, f"{CUDA}{colon}{index}")
        return choose(storage, location)

    return told

"""Random numbers: the seeds and states of the devices' generators."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import overload

import torch

from torchferry.runtime.device_parts import RandomStates
from torchferry.sim import native
from torchferry.sim.device_module.devices import DeviceLike, existing_index


class SimulatedRandomStates(RandomStates):
    """A generator for each device."""

    def generator(self, device: DeviceLike = None) -> torch.Generator:
        """The generator that random operators of a device draw from."""
        return native.default_generator(existing_index(device))

    def _device_count(self) -> int:
        return native.device_count()


random_states = SimulatedRandomStates()
generator = random_states.generator


def manual_seed(seed: int) -> None:
    """Seed the current device; where no device is visible this is ignored, as by CUDA."""
    if native.device_count():
        generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed every device."""
    for device in range(native.device_count()):
        generator(device).manual_seed(int(seed))


def seed() -> None:
    """Seed the current device by chance."""
    manual_seed(random.SystemRandom().getrandbits(63))


def seed_all() -> None:
    """Seed every device with one number taken by chance."""
    manual_seed_all(random.SystemRandom().getrandbits(63))


def initial_seed() -> int:
    """The seed of the current device."""
    return generator(None).initial_seed()


class DefaultGenerators(Sequence[torch.Generator]):
    """The generators of all devices that are visible now."""

    def __len__(self) -> int:
        return native.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | tuple[torch.Generator, ...]:
        found = range(len(self))[index]
        return tuple(map(generator, found)) if isinstance(found, range) else generator(found)


API = {
    **random_states.states(),
    "initial_seed": initial_seed,
    "manual_seed": manual_seed,
    "manual_seed_all": manual_seed_all,
    "seed": seed,
    "seed_all": seed_all,
}

INTERNAL = {"_get_generator": generator}

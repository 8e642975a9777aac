"""Random numbers: the seeds and states of the devices' generators."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import overload

import torch

from torchferry.runtime.device_parts import RandomStates, functions_of
from torchferry.sim import native
from torchferry.sim.device_module.devices import DeviceLike, existing_index


class SimulatedRandomStates(RandomStates):
    """A generator for each device."""

    def _get_generator(self, device: DeviceLike = None) -> torch.Generator:
        return native.default_generator(existing_index(device))

    def _device_count(self) -> int:
        return native.device_count()

    def manual_seed(self, seed: int) -> None:
        """Seed the current device; where no device is visible this is ignored, as by CUDA."""
        if native.device_count():
            self._get_generator().manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seed every device."""
        for device in range(native.device_count()):
            self._get_generator(device).manual_seed(int(seed))

    def seed(self) -> None:
        """Seed the current device by chance."""
        self.manual_seed(random.SystemRandom().getrandbits(63))

    def seed_all(self) -> None:
        """Seed every device with one number taken by chance."""
        self.manual_seed_all(random.SystemRandom().getrandbits(63))

    def initial_seed(self) -> int:
        """The seed of the current device."""
        return self._get_generator().initial_seed()


random_states = SimulatedRandomStates()


class DefaultGenerators(Sequence[torch.Generator]):
    """The generators of all devices that are visible now."""

    def __len__(self) -> int:
        return native.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[torch.Generator, ...]: ...
    def __getitem__(self, index: int | slice) -> torch.Generator | tuple[torch.Generator, ...]:
        found, generator = range(len(self))[index], random_states._get_generator
        return tuple(map(generator, found)) if isinstance(found, range) else generator(found)


API = functions_of(random_states)
INTERNAL = {"_get_generator": random_states._get_generator}

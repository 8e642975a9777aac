"""Random numbers of the stand-in: every device draws from the CPU's default generator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from torchferry.runtime.host.devices import Devices


class Seeds:
    """Seeds and states, of which there is one for all devices."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def generator(self, device: Any = None) -> torch.Generator:
        """The generator that random operators of a device draw from."""
        self._devices.existing_index(device)
        return torch.default_generator

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        """A device's random state, as bytes."""
        return self.generator(device).get_state()

    def get_rng_state_all(self) -> list[torch.Tensor]:
        """The random states of all devices."""
        return [self.get_rng_state(device) for device in range(self._devices.device_count())]

    def set_rng_state(self, new_state: torch.Tensor, device: Any = None) -> None:
        """Put back a random state."""
        self.generator(device).set_state(new_state)

    def set_rng_state_all(self, new_states: Iterable[torch.Tensor]) -> None:
        """Put back the random states of all devices."""
        for device, state in enumerate(new_states):
            self.set_rng_state(state, device)


def manual_seed(seed: int) -> None:
    """Seed every device, and so the CPU."""
    torch.default_generator.manual_seed(int(seed))


def seed_by_chance() -> None:
    """Seed every device by chance, and so the CPU."""
    torch.default_generator.seed()


def initial_seed() -> int:
    """The seed of all devices."""
    return torch.default_generator.initial_seed()


def names(devices: Devices) -> tuple[dict[str, Any], dict[str, Any]]:
    """The part of torch.cuda, and all of torch.cuda.random."""
    seeds = Seeds(devices)
    functions = {
        "get_rng_state": seeds.get_rng_state,
        "get_rng_state_all": seeds.get_rng_state_all,
        "initial_seed": initial_seed,
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
        "seed": seed_by_chance,
        "seed_all": seed_by_chance,
        "set_rng_state": seeds.set_rng_state,
        "set_rng_state_all": seeds.set_rng_state_all,
    }
    of_devices = (torch.default_generator,) * devices.device_count()
    return {**functions, "_get_generator": seeds.generator, "default_generators": of_devices}, functions

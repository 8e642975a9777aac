"""Random numbers."""

from __future__ import annotations

import torch

from tests.sim.checking import Target


def _draw(target: Target, device: int = 0) -> torch.Tensor:
    return torch.rand(8, device=f"{target.type}:{device}").cpu()


def check_a_seed_repeats_the_numbers_of_every_device(target: Target) -> None:
    target.module.manual_seed_all(5)
    first = [_draw(target, device) for device in (0, 1)]
    target.module.manual_seed_all(5)
    assert all(torch.equal(first[device], _draw(target, device)) for device in (0, 1))
    assert target.module.initial_seed() == 5


def check_torchs_seed_reaches_the_device(target: Target) -> None:
    torch.manual_seed(7)
    first = _draw(target)
    torch.manual_seed(7)
    assert torch.equal(first, _draw(target))
    assert target.module.initial_seed() == 7


def check_the_seed_of_one_device_leaves_the_other(target: Target) -> None:
    state = target.module.get_rng_state(1)
    target.module.manual_seed(11)
    assert torch.equal(state, target.module.get_rng_state(1))


def check_chance_changes_the_seed(target: Target) -> None:
    target.module.manual_seed(1)
    target.module.seed()
    assert target.module.initial_seed() != 1
    target.module.seed_all()
    assert (
        target.module.default_generators[0].initial_seed()
        == target.module.default_generators[1].initial_seed()
    )


def check_states_come_back(target: Target) -> None:
    states = target.module.get_rng_state_all()
    assert [state.dtype for state in states] == [torch.uint8, torch.uint8]
    first = [_draw(target, device) for device in (0, 1)]
    target.module.set_rng_state_all(states)
    assert all(torch.equal(first[device], _draw(target, device)) for device in (0, 1))
    state = target.module.get_rng_state(f"{target.type}:1")
    again = _draw(target, 1)
    target.module.set_rng_state(state, torch.device(target.type, 1))
    assert torch.equal(again, _draw(target, 1))


def check_fork_rng_keeps_the_device_state(target: Target) -> None:
    target.module.manual_seed_all(3)
    with torch.random.fork_rng(devices=[0], device_type=target.type):
        _draw(target)
    inside = _draw(target)
    target.module.manual_seed_all(3)
    assert torch.equal(inside, _draw(target))

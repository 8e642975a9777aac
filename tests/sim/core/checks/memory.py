"""Memory: what is counted, what happens when it is exhausted, and that nothing leaks."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import Tensor, nn

from tests.sim.checking import Target
from torchferry.sim import native

GIB = 1 << 30


def check_more_than_there_is_raises_with_the_vendors_words(target: Target) -> None:
    before = native.memory_use(0)
    with pytest.raises(torch.OutOfMemoryError, match=r"(?i)out of memory") as caught:
        torch.empty(2 * GIB, dtype=torch.uint8, device=target.type)
    assert "2.00 GiB" in str(caught.value)
    after = native.memory_use(0)
    assert after.allocated == before.allocated
    assert after.out_of_memory == before.out_of_memory + 1


def check_the_result_of_an_operator_counts_too(target: Target) -> None:
    x = torch.empty(300 << 20, dtype=torch.uint8, device=target.type)
    y = x.clone()
    with pytest.raises(torch.OutOfMemoryError):
        (x + 1, y + 1)
    del x, y


def check_training_goes_on_after_out_of_memory_as_if_nothing_had_been(target: Target) -> None:
    def losses(fail_at: int | None) -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.1), nn.Linear(64, 1)).to(target.type)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        found = []
        for step in range(6):
            if step == fail_at:
                with pytest.raises(torch.OutOfMemoryError):
                    model(torch.ones(1 << 24, 64, device=target.type))
                target.module.empty_cache()
            loss = model(torch.ones(8, 64, device=target.type)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    assert losses(fail_at=3) == losses(fail_at=None)


def check_a_thousand_steps_leave_memory_as_it_was(target: Target) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(target.type)
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(target.type, dtype=torch.bfloat16):
            loss = model(torch.randn(4, 8, device=target.type)).pow(2).mean()
        loss.backward()
        optimizer.step()

    for _ in range(10):
        step()
    gc.collect()
    before = native.memory_use(0)
    for _ in range(1000):
        step()
    gc.collect()
    after = native.memory_use(0)
    assert (after.allocated, after.reserved) == (before.allocated, before.reserved)
    assert after.allocations - before.allocations == after.frees - before.frees


def check_every_way_to_let_go_is_counted(target: Target) -> None:
    gc.collect()
    before = native.memory_use(1)
    device = f"{target.type}:1"
    kept: list[Tensor] = [torch.ones(1000, device=device), torch.ones(1000).to(device)]
    kept.append(kept[0].view(10, 100).t().contiguous())
    kept.append(torch.cat(kept[:2]))
    kept[0].resize_(100_000)
    kept[1].data = torch.zeros(5, device=device)
    kept[2].untyped_storage().resize_(0)
    assert native.memory_use(1).allocated > before.allocated
    kept.clear()
    assert native.memory_use(1).allocated == before.allocated


def check_devices_have_accounts_of_their_own(target: Target) -> None:
    before = [native.memory_use(device).allocated for device in (0, 1)]
    x = torch.ones(1 << 20, device=f"{target.type}:1")
    y = x + x  # on the device of its arguments, not on the current one
    after = [native.memory_use(device).allocated for device in (0, 1)]
    block = -(-(x.nbytes + target.vendor.limits.block_padding) // 512) * 512
    assert after[0] == before[0] and after[1] - before[1] == 2 * block
    assert y.device.index == 1

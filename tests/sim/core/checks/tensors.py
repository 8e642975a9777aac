"""Tensors of the device: made, moved, viewed, indexed, resized, saved."""

from __future__ import annotations

import copy
import io
import os

import pytest
import torch
from torch import nn

from tests.sim.checking import Target, loader_pinning


def check_moving_there_and_back_keeps_every_bit(target: Target) -> None:
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.bool,
        torch.complex64,
    ):
        x = (torch.randn(3, 4, dtype=torch.float64) * 3).to(dtype)
        there = x.to(target.type)
        assert there.device == torch.device(target.type, 0) and there.dtype is dtype
        assert there.data_ptr() != x.data_ptr()
        assert torch.equal(there.cpu(), x)
        assert torch.equal(there.to(f"{target.type}:1").cpu(), x)


def check_a_view_shares_its_bytes(target: Target) -> None:
    x = torch.zeros(2, 3, device=target.type)
    for view in (
        x.view(6),
        x.t(),
        x[0],
        x[:, 1:],
        x.unfold(1, 2, 1),
        x.as_strided((2,), (1,)),
        x.expand(2, 2, 3),
    ):
        assert view._is_view()
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    x.view(6)[5] = 7
    assert x[1, 2].item() == 7
    complex_numbers = torch.zeros(2, dtype=torch.complex64, device=target.type)
    torch.view_as_real(complex_numbers)[0, 1] = 3
    assert complex_numbers[0].item() == 3j
    assert complex_numbers.conj().is_conj() and complex_numbers.conj()[0].item() == -3j


def check_indexing(target: Target) -> None:
    x = torch.arange(12.0, device=target.type).view(3, 4)
    assert x[torch.tensor([0, 2], device=target.type)].shape == (2, 4)
    assert (
        x[torch.tensor([0, 2])].device.type == target.type
    )  # indices may lie on the CPU, not on another device
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x[torch.tensor([0, 2], device=f"{target.type}:1")]
    x[x > 5] = 0
    assert x.sum().item() == 15
    x[1] = torch.ones(4, device=target.type)
    assert x.nonzero().device.type == target.type
    assert x.index_select(0, torch.tensor([1], device=target.type)).tolist() == [[1, 1, 1, 1]]
    x.index_put_((torch.tensor([0]),), torch.tensor(9.0))
    assert x[0].tolist() == [9, 9, 9, 9]


def check_tensors_of_two_devices_do_not_mix(target: Target) -> None:
    x = torch.ones(3, 3, device=target.type)
    for other in (torch.ones(3, 3), torch.ones(3, 3, device=f"{target.type}:1")):
        for run in (torch.add, torch.mm, lambda a, b: torch.cat([a, b]), nn.functional.linear):
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                run(x, other)
    assert (x + torch.tensor(2.0)).device.type == target.type  # a host scalar may join
    x.copy_(torch.zeros(3, 3))
    assert x.sum().item() == 0


def check_out_and_resize(target: Target) -> None:
    out = torch.empty(0, device=target.type)
    torch.add(torch.ones(3, device=target.type), 1, out=out)
    assert out.tolist() == [2, 2, 2]
    out.resize_(5)
    assert out[:3].tolist() == [2, 2, 2]
    out.untyped_storage().resize_(1024)
    assert out.untyped_storage().nbytes() == 1024
    assert out[:3].tolist() == [2, 2, 2]
    out.set_()  # type: ignore[call-overload]
    assert out.numel() == 0 and out.device.type == target.type
    x = torch.ones(2, 2, device=target.type)
    torch.mul(x, 3, out=x)
    assert x.tolist() == [[3, 3], [3, 3]]


def check_save_and_load_between_devices(target: Target) -> None:
    file = io.BytesIO()
    model = nn.Linear(3, 2).to(target.type)
    torch.save({"model": model.state_dict(), "second": torch.ones(2, device=f"{target.type}:1")}, file)
    places = {None: f"{target.type}:1", "cpu": "cpu", f"{target.type}:0": f"{target.type}:0"}
    for map_location, expected in places.items():
        file.seek(0)
        loaded = torch.load(file, map_location=map_location)
        assert loaded["second"].device == torch.device(expected)
        assert torch.equal(loaded["model"]["weight"].cpu(), model.weight.cpu())


def check_copies_of_modules_and_parameters(target: Target) -> None:
    model = nn.Linear(3, 2)
    weight = model.weight
    model.to(target.type)
    if target.vendor.limits.shallow_copy is not False:
        assert model.weight is weight  # an optimizer that was made before still holds the right tensors
    twin = copy.deepcopy(model)
    twin.weight.data.zero_()
    assert model.weight.abs().sum() > 0
    assert model.to("cpu").weight.device.type == "cpu"


def check_pinned_memory(target: Target) -> None:
    pinned = torch.ones(8).pin_memory()
    assert pinned.is_pinned() and pinned[3:].is_pinned() and not torch.ones(8).is_pinned()
    assert torch.equal(pinned.to(target.type, non_blocking=True).cpu(), torch.ones(8))
    data = torch.utils.data.TensorDataset(torch.randn(8, 3))
    loader = torch.utils.data.DataLoader(data, 4, num_workers=1, **loader_pinning(target))
    assert all(batch.is_pinned() for (batch,) in loader)
    with pytest.raises(RuntimeError):
        torch.ones(2, device=target.type).pin_memory()


def check_random_numbers_follow_the_seed(target: Target) -> None:
    own = torch.Generator(device=target.type).manual_seed(3)
    drawn = torch.randn(4, device=target.type, generator=own)
    assert torch.equal(drawn.cpu(), torch.randn(4, generator=torch.Generator().manual_seed(3)))
    torch.manual_seed(5)
    on_cpu = torch.rand(3)
    assert torch.equal(on_cpu, torch.rand(3, device=target.type).cpu())
    assert not torch.equal(on_cpu, torch.rand(3, device=target.type).cpu())  # the sequence goes on
    for draw in (
        torch.bernoulli,
        torch.poisson,
        lambda p: torch.multinomial(p, 2),
        lambda p: p.clone().exponential_(),
    ):
        rates = torch.full((4,), 0.5)
        torch.manual_seed(7)
        expected = draw(rates)
        torch.manual_seed(7)
        assert torch.equal(draw(rates.to(target.type)).cpu(), expected)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(4, device=target.type, generator=torch.Generator())
    before = torch.get_rng_state()
    nn.functional.dropout(torch.ones(9, device=target.type))
    assert torch.equal(before, torch.get_rng_state())  # the CPU's own sequence is left alone


def check_quantized_tensors_and_numpy_are_refused(target: Target) -> None:
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.quantize_per_tensor(torch.ones(2, device=target.type), 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match="host memory"):
        torch.ones(2, device=target.type).numpy()


def check_a_device_that_is_not_there(target: Target) -> None:
    for use in (lambda d: torch.ones(2, device=d), lambda d: torch.ones(2).to(d), target.module.set_device):
        with pytest.raises(RuntimeError, match="invalid device ordinal"):
            use(f"{target.type}:2")


def check_half_precision_where_the_cpu_has_no_kernel(target: Target) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(1, 1, 4, 4, 4).to(dtype)
        y = nn.functional.avg_pool3d(x.to(target.type), 2)
        assert y.dtype is dtype
        assert torch.equal(y.cpu(), nn.functional.avg_pool3d(x.float(), 2).to(dtype))
    with pytest.raises(
        RuntimeError, match="shape"
    ):  # an error that has nothing to do with the dtype stays as it is
        torch.ones(2, 3, device=target.type, dtype=torch.half) @ torch.ones(
            2, 3, device=target.type, dtype=torch.half
        )


def check_printing_does_not_trip_over_limits(target: Target) -> None:
    text = repr(torch.tensor([1.5, 1e-8], device=target.type))
    assert f"device='{target.type}:0'" in text and "1.5000e+00" in text
    assert "1" in repr(torch.tensor([1, 2], device=target.type))


def check_labels_may_be_int32_as_hand_migrated_programs_have_them(target: Target) -> None:
    scores = torch.randn(3, 4)
    labels = torch.tensor([0, 3, 1])
    expected = nn.functional.cross_entropy(scores, labels)
    there = scores.to(target.type).requires_grad_()
    loss = nn.functional.cross_entropy(there, labels.to(torch.int32).to(target.type))
    loss.backward()
    assert loss.item() == expected.item()


def check_a_fork_of_a_process_that_used_the_device_cant_use_it(target: Target) -> None:
    x = torch.ones(2, device=target.type)
    uses = (lambda: torch.ones(2, device=target.type), lambda: torch.ones(2).to(target.type), lambda: x + 1)
    child = os.fork()
    if child == 0:
        refused = 0
        for use in uses:
            try:
                use()
            except RuntimeError as error:
                refused += "in forked subprocess" in str(error)
        torch.ones(2) + 1  # the CPU can be used
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(uses)
    assert (x + 1).tolist() == [2, 2]

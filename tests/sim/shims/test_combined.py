"""What combining does: one buffer, zero_grad and clipping on it, and a word when gradients leave it."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from tests.sim.shims.nets import batches, parameters, set_gradients, small_net
from torchferry.sim.shims.optim.combined import combine, is_combined, part_of
from torchferry.sim.shims.optim.npu import NpuFusedAdam, NpuFusedSGD


def stepped() -> tuple[list[nn.Parameter], NpuFusedSGD]:
    params = parameters()
    optimizer = NpuFusedSGD(params, lr=0.1)
    set_gradients(params, 0)
    optimizer.step()
    return params, optimizer


def test_combined_tensors_share_a_buffer_and_keep_their_values_and_strides() -> None:
    tensors = [
        torch.randn(3, 4),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(()),
    ]
    before = [(tensor.clone(), tensor.stride()) for tensor in tensors]
    buffer = combine(tensors)
    assert buffer is not None and buffer.shape == (12 + 120 + 1,)
    for tensor, (values, stride) in zip(tensors, before, strict=True):
        assert torch.equal(tensor, values) and tensor.stride() == stride
    assert is_combined(buffer, tensors)
    buffer.fill_(2.0)
    assert all(bool((tensor == 2).all()) for tensor in tensors)
    assert not is_combined(buffer, [tensors[0].clone()])


def test_nothing_to_combine_is_nothing() -> None:
    assert combine([]) is None
    assert combine([torch.empty(0)]) is None
    assert part_of(None, 0, 3) is None


def test_a_part_shares_the_buffer_and_must_lie_in_it() -> None:
    buffer = torch.zeros(10)
    part = part_of(buffer, 4, 3)
    assert part is not None
    part.fill_(1.0)
    assert buffer.tolist() == [0] * 4 + [1] * 3 + [0] * 3
    with pytest.raises(RuntimeError, match="more than the buffer's 10"):
        part_of(buffer, 8, 3)


def test_different_dtypes_can_not_be_combined() -> None:
    with pytest.raises(RuntimeError, match="same dtype"):
        combine([torch.zeros(1), torch.zeros(1, dtype=torch.float16)])


def test_parameters_and_gradients_lie_in_the_optimizers_buffers() -> None:
    params, optimizer = stepped()
    grads = [param.grad for param in params]
    assert is_combined(optimizer.get_combined_params()[0], params)
    assert is_combined(optimizer.get_combined_grads()[0], grads)
    assert optimizer.get_combined_params()[1] is None  # nothing in float16


def test_zero_grad_keeps_gradients_where_they_are() -> None:
    params, optimizer = stepped()
    buffer = optimizer.get_combined_grads()[0]
    optimizer.zero_grad()
    assert buffer is not None and not buffer.any()
    assert is_combined(buffer, [param.grad for param in params])
    with pytest.raises(ValueError, match="set_to_none is not supported in fused optimizers"):
        optimizer.zero_grad(set_to_none=True)


def test_clipping_is_torchs() -> None:
    for norm_type in (2.0, 1.0, float("inf")):
        ours, theirs = parameters(), parameters()
        set_gradients(ours, 0)
        set_gradients(theirs, 0)
        total = NpuFusedSGD(ours, lr=0.1).clip_grad_norm_fused_(0.5, norm_type)
        expected = nn.utils.clip_grad_norm_(theirs, 0.5, norm_type)
        torch.testing.assert_close(total, expected)
        for left, right in zip(ours, theirs, strict=True):
            torch.testing.assert_close(left.grad, right.grad)


def test_small_gradients_are_not_clipped() -> None:
    params = parameters()
    set_gradients(params, 0)
    before = [param.grad.clone() for param in params if param.grad is not None]
    NpuFusedSGD(params, lr=0.1).clip_grad_norm_fused_(1e6)
    for param, gradient in zip(params, before, strict=True):
        assert param.grad is not None and torch.equal(param.grad, gradient)


def test_dropped_gradients_train_on_and_are_warned_about() -> None:
    params, optimizer = stepped()
    reference = parameters()
    plain = torch.optim.SGD(reference, lr=0.1)
    set_gradients(reference, 0)
    plain.step()
    for param in params:
        param.grad = None
    set_gradients(params, 1)
    set_gradients(reference, 1)
    with pytest.warns(RuntimeWarning, match="it would train on old gradients"):
        optimizer.step()
    plain.step()
    assert all(torch.equal(left, right) for left, right in zip(params, reference, strict=True))


def test_training_a_net_the_intended_way_warns_of_nothing() -> None:
    net, reference = small_net(), small_net()
    fused, plain = NpuFusedAdam(net.parameters()), torch.optim.Adam(reference.parameters())
    losses: list[tuple[float, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for images, classes in batches(4):
            pair = []
            for model, optimizer in ((net, fused), (reference, plain)):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), classes)
                loss.backward()
                optimizer.step()
                pair.append(loss.item())
            losses.append((pair[0], pair[1]))
    assert all(ours == theirs for ours, theirs in losses)
    assert losses[0] != losses[-1]


def test_an_empty_parameter_is_no_reason_to_warn() -> None:
    params = [nn.Parameter(torch.empty(0)), nn.Parameter(torch.ones(2))]
    optimizer = NpuFusedSGD(params, lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            set_gradients(params, 0)
            optimizer.step()
            optimizer.zero_grad()


def test_other_precisions_are_refused() -> None:
    param = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16))
    param.grad = torch.ones_like(param)
    with pytest.raises(TypeError, match=r"must be either float32 or float16, but received torch\.bfloat16"):
        NpuFusedSGD([param], lr=0.1).step()


def test_sparse_gradients_are_refused() -> None:
    from torchferry.sim.shims.optim.npu import NpuFusedAdamP

    layer = nn.Embedding(4, 3, sparse=True)
    layer(torch.tensor([1])).sum().backward()
    optimizer = NpuFusedAdamP(layer.parameters())
    with pytest.raises(RuntimeError):
        optimizer.step()

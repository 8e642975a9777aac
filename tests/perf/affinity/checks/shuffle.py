"""Channel shuffle: transposed and copied, or picked by index."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch import nn

from tests.perf.affinity.checks.plain import DTYPES, outcome, same, transposed_shuffle
from torchferry.perf.affinity import ChannelShuffle, channel_shuffle


def check_one_tensor(target: Any) -> None:
    for dtype, groups in product(DTYPES, (1, 2, 3, 4, 12)):
        x = torch.randn(2, 12, 3, 5).to(target.type, dtype)
        weights = [torch.randn(2, 12, 3, 5).to(target.type, dtype)]
        plain = outcome(lambda x, groups=groups: transposed_shuffle(x, groups), [x], weights)
        same(plain, outcome(lambda x, groups=groups: channel_shuffle(x, groups), [x], weights))
        module = ChannelShuffle(12, groups, split_shuffle=False).to(target.type)
        same(plain, outcome(module, [x], weights))


def check_two_tensors_joined_shuffled_and_split(target: Any) -> None:
    for dtype, groups, is_split in product(DTYPES, (2, 3), (True, False)):
        inputs = [torch.randn(2, channels, 3, 5).to(target.type, dtype) for channels in (5, 7)]
        weights = [
            torch.randn(2, 12 // (1 + is_split), 3, 5).to(target.type, dtype) for _ in range(1 + is_split)
        ]

        def plain(x1: Any, x2: Any, groups: int = groups, is_split: bool = is_split) -> Any:
            whole = transposed_shuffle(torch.cat((x1, x2), dim=1), groups)
            return whole.chunk(2, dim=1) if is_split else whole

        module = ChannelShuffle(12, groups, is_split).to(target.type)
        same(outcome(plain, inputs, weights), outcome(module, inputs, weights))


def check_its_gradients_and_halves_are_contiguous(target: Any) -> None:
    inputs = [torch.randn(2, 6, 3, 5, device=target.type).requires_grad_() for _ in range(2)]
    for is_split in (True, False):
        results = ChannelShuffle(12, 2, is_split).to(target.type)(*inputs)
        results = results if is_split else (results,)
        assert all(result.is_contiguous() for result in results)
        gradients = torch.autograd.grad(sum((result**2).sum() for result in results), inputs)
        assert all(gradient.is_contiguous() for gradient in gradients)


def check_inputs_that_are_not_contiguous_or_empty(target: Any) -> None:
    x = torch.randn(2, 3, 5, 12).to(target.type).permute(0, 3, 1, 2)
    plain = transposed_shuffle(x.contiguous(), 4)
    assert torch.equal(channel_shuffle(x, 4).cpu(), plain.cpu())
    for shape in ((0, 12, 3, 5), (2, 12, 0, 5)):
        assert channel_shuffle(torch.randn(shape).to(target.type), 4).shape == shape


def check_under_autocast(target: Any) -> None:
    """Branches of a model in two types are joined in the wider one, as torch.cat does."""
    inputs = [torch.randn(2, 6, 3, 5).to(target.type, dtype) for dtype in (torch.bfloat16, torch.float32)]
    weights = [torch.randn(2, 12, 3, 5).to(target.type)]
    module = ChannelShuffle(12, 2, split_shuffle=False).to(target.type)
    with torch.autocast(target.type, dtype=torch.bfloat16):
        plain = outcome(lambda x1, x2: transposed_shuffle(torch.cat((x1, x2), 1), 2), inputs, weights)
        same(plain, outcome(module, inputs, weights))


def check_odd_channels_are_refused_as_by_torch(target: Any) -> None:
    x = torch.randn(1, 7, 2, 2).to(target.type)
    said = []
    for function in (
        torch.nn.functional.channel_shuffle,
        channel_shuffle,
        lambda x, groups: ChannelShuffle(7, groups),
    ):
        try:
            function(x, 2)
        except RuntimeError as error:
            said.append(str(error).splitlines()[0])
    assert len(said) == 3 and said[0] == said[1] == said[2], said
    try:
        ChannelShuffle(12)(x, x)
    except RuntimeError as error:
        assert "12 channels, but was given 14" in str(error)
    else:
        raise AssertionError("two channels too many were dropped")


def check_checkpoints_of_the_plain_model_fit(target: Any) -> None:
    plain = nn.Sequential(nn.Conv2d(4, 4, 1), nn.Identity())
    ours = nn.Sequential(nn.Conv2d(4, 4, 1), ChannelShuffle(4, split_shuffle=False)).to(target.type)
    ours.load_state_dict(plain.state_dict())
    assert list(ours.state_dict()) == list(plain.state_dict())
    assert ours(torch.randn(1, 4, 2, 2).to(target.type)).device.type == target.type

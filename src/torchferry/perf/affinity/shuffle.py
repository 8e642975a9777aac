"""Channel shuffle that picks channels by index: nothing is transposed, no copy of a non-contiguous tensor is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Indices = tuple[Tensor, ...]
_CHANNELS = 1  # dimension


class _Regroup(torch.autograd.Function):
    """Joins tensors by their channels and deals the channels out again; its backward pass is the way back.

    That of PyTorch adds up by index after index_select, and gives slices of one tensor, which are not contiguous,
    after cat. Every channel has one place in each direction, so it can be picked here as well.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(there: Indices, back: Indices, *inputs: Tensor) -> tuple[Tensor, ...]:
        return _dealt(inputs, there)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.back = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *_dealt(grads, ctx.back)


def _dealt(inputs: tuple[Tensor, ...], indices: Indices) -> tuple[Tensor, ...]:
    joined = inputs[0] if len(inputs) == 1 else torch.cat(inputs, dim=_CHANNELS)
    return tuple([joined.index_select(_CHANNELS, index) for index in indices])


_regrouped: Callable[..., tuple[Tensor, ...]] = _Regroup.apply


class ChannelShuffle(nn.Module):
    """`channel_shuffle(torch.cat((x1, x2), 1), groups)`, and its `.chunk(2, 1)` if split_shuffle, in one piece.

    With one tensor, `channel_shuffle(x, groups)`. The indices are buffers: they go where the module goes, and are not
    in its state_dict, so that checkpoints of the plain form fit.
    """

    order: Tensor
    places: Tensor

    def __init__(self, in_channels: int, groups: int = 2, split_shuffle: bool = True) -> None:
        super().__init__()
        _check_groups(in_channels, groups)
        self.in_channels = in_channels
        self.groups = groups
        self.split_shuffle = split_shuffle
        order = _order(in_channels, groups, torch.device("cpu"))
        self.register_buffer("order", order, persistent=False)
        self.register_buffer(
            "places", _order(in_channels, in_channels // groups, order.device), persistent=False
        )

    def forward(self, x1: Tensor, x2: Tensor | None = None) -> Any:
        """The shuffled tensor, or its two halves."""
        inputs = (x1,) if x2 is None else (x1, x2)
        channels = sum(tensor.shape[_CHANNELS] for tensor in inputs)
        if channels != self.in_channels:
            raise RuntimeError(
                f"ChannelShuffle was made for {self.in_channels} channels, but was given {channels}"
            )
        halves = self.order.chunk(2) if self.split_shuffle else (self.order,)
        back = torch.split(self.places, [tensor.shape[_CHANNELS] for tensor in inputs])
        shuffled = _regrouped(tuple(halves), tuple(back), *inputs)
        return shuffled if self.split_shuffle else shuffled[0]

    def extra_repr(self) -> str:
        return f"{self.in_channels}, groups={self.groups}, split_shuffle={self.split_shuffle}"


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels of the groups in turns: what torch.nn.functional.channel_shuffle computes, for any number of dimensions.

    It makes its index at every call; ChannelShuffle keeps it.
    """
    channels = x.shape[_CHANNELS]
    _check_groups(channels, groups)
    order = _order(channels, groups, x.device)
    places = _order(channels, channels // groups, x.device)
    return _regrouped((order,), (places,), x)[0]


def _order(channels: int, groups: int, device: torch.device) -> Tensor:
    """Which channel comes to each place. With `channels // groups` groups instead, the way back."""
    place = torch.arange(channels, dtype=torch.int32, device=device)
    if not channels:
        return place
    return place % groups * (channels // groups) + torch.div(place, groups, rounding_mode="floor")


def _check_groups(channels: int, groups: int) -> None:
    """Raise as torch.nn.functional.channel_shuffle does."""
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )

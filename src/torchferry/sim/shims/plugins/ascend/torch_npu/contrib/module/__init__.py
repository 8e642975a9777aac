"""torch_npu.contrib.module: layers that the adapter has a fast form of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "BiLSTM",
    "ChannelShuffle",
    "FastBatchNorm1d",
    "FastBatchNorm2d",
    "FastBatchNorm3d",
    "FastSyncBatchNorm",
    "Focus",
    "LabelSmoothingCrossEntropy",
    "Mish",
    "NpuCachedDropout",
    "NpuDropPath",
    "NpuFairseqDropout",
    "NpuPreGenDropout",
    "Prefetcher",
    "SiLU",
    "Swish",
]

# On the card these count batches in 32 bits; what they compute is torch's.
FastBatchNorm1d = nn.BatchNorm1d
FastBatchNorm2d = nn.BatchNorm2d
FastBatchNorm3d = nn.BatchNorm3d
FastSyncBatchNorm = nn.SyncBatchNorm
Mish = nn.Mish
SiLU = nn.SiLU
Swish = SiLU


class NpuCachedDropout(nn.Dropout):
    """torch.nn.Dropout; on the card masks are drawn ahead of time."""

    def __init__(self, p: float, module_name: str | None = None) -> None:
        super().__init__(p)
        self.module_name = module_name


NpuFairseqDropout = NpuCachedDropout
NpuPreGenDropout = NpuCachedDropout


class NpuDropPath(nn.Module):
    """Drops a whole sample's branch with a probability, and scales up those that stay."""

    def __init__(self, drop_prob: float | None = None) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: Tensor) -> Tensor:
        """Drop in training, pass through else."""
        if not self.drop_prob or not self.training:
            return x
        keep = 1 - self.drop_prob
        shape = (x.size(0), *[1] * (x.dim() - 1))
        return x.div(keep) * torch.rand(shape, dtype=x.dtype, device=x.device).add_(keep).floor_()


class LabelSmoothingCrossEntropy(nn.Module):
    """Cross entropy with smoothed labels; the smooth part is shared by the other classes."""

    def __init__(self, num_classes: int = 1000, smooth_factor: float = 0.0) -> None:
        super().__init__()
        self.on_value = 1.0 - smooth_factor
        self.off_value = smooth_factor / (num_classes - 1)

    def forward(self, pred: Tensor, target: Tensor) -> Tensor:
        """The mean over the batch."""
        hit = functional.one_hot(target.long(), pred.size(-1)).bool()
        labels = torch.where(hit, self.on_value, self.off_value).to(pred)
        return -(functional.log_softmax(pred, dim=-1) * labels).sum(dim=-1).mean()


class ChannelShuffle(nn.Module):
    """Shuffles the channels of two halves among groups."""

    def __init__(self, in_channels: int, groups: int = 2, split_shuffle: bool = True) -> None:
        super().__init__()
        self.groups = groups
        self.split_shuffle = split_shuffle
        self.in_channels = in_channels

    def forward(self, x1: Tensor, x2: Tensor) -> Any:
        """The shuffled halves, or the whole where no split is wanted."""
        joined = torch.cat((x1, x2), dim=1)
        grouped = joined.reshape(joined.size(0), self.groups, -1, *joined.shape[2:])
        shuffled = grouped.transpose(1, 2).flatten(1, 2)
        return shuffled.chunk(2, dim=1) if self.split_shuffle else shuffled


class Focus(nn.Module):
    """Four pixels' channels side by side, then a convolution, normalisation and SiLU, as YOLOv5 begins."""

    def __init__(
        self, c1: int, c2: int, k: int = 1, s: int = 1, p: int | None = None, g: int = 1, act: Any = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c1 * 4, c2, k, s, k // 2 if p is None else p, groups=g, bias=False)
        self.bn = nn.BatchNorm2d(c2)
        self.act = nn.SiLU() if act is True else act if isinstance(act, nn.Module) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Half the height and width, four times the channels, then c2."""
        corners = [x[..., row::2, column::2] for column in (0, 1) for row in (0, 1)]
        result: Tensor = self.act(self.bn(self.conv(torch.cat(corners, dim=1))))
        return result


class BiLSTM(nn.LSTM):
    """A bidirectional LSTM of one layer that answers its outputs alone."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, bidirectional=True)

    def forward(self, inputs: Tensor) -> Tensor:  # type: ignore[override]
        """Sequence, batch, both directions' outputs."""
        outputs: Tensor = super().forward(inputs)[0]
        return outputs


class Prefetcher:
    """A loader's batches, moved to the device ahead of use."""

    def __init__(self, loader: Iterable[Any], stream: Any = None) -> None:
        self.stream = stream
        self._batches = self._move(iter(loader))

    def next(self) -> tuple[Any, Any]:
        """The next input and target; None and None when there are no more."""
        return next(self._batches, (None, None))

    @staticmethod
    def _move(batches: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        for inputs, target in batches:
            device = torch._C._get_privateuse1_backend_name()
            yield inputs.to(device, non_blocking=True), target.to(device, non_blocking=True)

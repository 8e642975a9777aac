"""The operators of SyncBatchNorm give on the CPU what they give on the device, bit for bit."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.sim.checking import Target


def _results(device: str, dtype: torch.dtype) -> list[Tensor]:
    """One step of two ranks: statistics, normalisation, running values, gradients."""
    torch.manual_seed(0)
    x, gradient = (torch.randn(3, 4, 5).to(device, dtype) for _ in range(2))
    weight, bias, running_mean, running_var = (torch.rand(4).to(device) for _ in range(4))
    mean, invstd = torch.batch_norm_stats(x, 1e-5)
    counts = torch.tensor([15.0, 15.0]).to(device)
    means, invstds = torch.stack([mean, mean + 1]), torch.stack([invstd, invstd * 2])
    all_mean, all_invstd = torch.batch_norm_gather_stats_with_counts(
        x, means, invstds, running_mean, running_var, 0.1, 1e-5, counts
    )
    y = torch.batch_norm_elemt(x, weight, bias, all_mean, all_invstd, 1e-5)
    sums = torch.batch_norm_backward_reduce(gradient, x, all_mean, all_invstd, weight, True, True, True)
    of_x = torch.batch_norm_backward_elemt(
        gradient, x, all_mean, all_invstd, weight, sums[0], sums[1], counts.int()
    )
    return [mean, invstd, all_mean, all_invstd, running_mean, running_var, y, *sums, of_x]


def check_every_operator(target: Target) -> None:
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for expected, found in zip(_results("cpu", dtype), _results(target.type, dtype), strict=True):
            assert found.dtype is expected.dtype
            assert torch.equal(found.cpu(), expected)

"""What this machine's CPU can do: PyTorch's libraries have kernels that others lack."""

from __future__ import annotations

from functools import cache


@cache
def trains_bfloat16_lstm() -> bool:
    """Whether PyTorch can train an LSTM in bfloat16 here; without AVX-512 its oneDNN can't."""
    import torch

    layer = torch.nn.LSTM(2, 2).bfloat16()
    try:
        layer(torch.zeros(1, 1, 2, dtype=torch.bfloat16))[0].sum().backward()
    except RuntimeError:
        return False
    return True

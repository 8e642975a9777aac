"""What this machine's CPU can do: PyTorch's libraries have kernels that others lack."""

from __future__ import annotations

from functools import cache


@cache
def trains_bfloat16_lstm() -> bool:
    """Whether PyTorch can train an LSTM under autocast here; without AVX-512 its oneDNN can't."""
    import torch

    try:
        with torch.autocast("cpu", torch.bfloat16):
            torch.nn.LSTM(2, 2)(torch.zeros(1, 1, 2))[0].sum().backward()
    except RuntimeError:
        return False
    return True

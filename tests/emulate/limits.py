"""Operators given what CANN takes and what it refuses, on the vendor's plugin; prints what each raised, as JSON.

Run by test_limits.py in a process with the plugin. Nothing waits for the device: what is refused is refused at the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

DEVICE = "npu"


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Ones: made on the CPU, as the plugin has kernels for fewer dtypes."""
    return torch.ones(shape, dtype=dtype).to(DEVICE)


def double(*shape: int) -> Tensor:
    """Double precision, which the plugin makes only where it is asked for by name."""
    return torch.ones(shape, dtype=torch.float64, device=DEVICE)


CASES: dict[str, Callable[[], object]] = {
    "mm float16": lambda: numbers(2, 3, dtype=torch.float16) @ numbers(3, 2, dtype=torch.float16),
    "mm bfloat16": lambda: numbers(2, 3, dtype=torch.bfloat16) @ numbers(3, 2, dtype=torch.bfloat16),
    "mm float64": lambda: double(2, 3) @ double(3, 2),
    "mm int64": lambda: numbers(2, 3, dtype=torch.int64) @ numbers(3, 2, dtype=torch.int64),
    "layer_norm float32": lambda: functional.layer_norm(numbers(2, 3), (3,)),
    "layer_norm float64": lambda: functional.layer_norm(double(2, 3), (3,)),
    "conv2d float16": lambda: functional.conv2d(
        numbers(1, 1, 4, 4, dtype=torch.float16), numbers(1, 1, 2, 2, dtype=torch.float16)
    ),
    "conv2d float64": lambda: functional.conv2d(double(1, 1, 4, 4), double(1, 1, 2, 2)),
    "cat int64": lambda: torch.cat([numbers(2, dtype=torch.int64)] * 2),
    "cat uint16": lambda: torch.cat([torch.empty(2, dtype=torch.uint16, device=DEVICE)] * 2),
    "add 8 dimensions": lambda: numbers(*[1] * 8) + numbers(*[1] * 8),
    "add 9 dimensions": lambda: numbers(*[1] * 9) + numbers(*[1] * 9),
    "repeat_interleave float32": lambda: torch.repeat_interleave(numbers(3), 2),
    "repeat_interleave float64": lambda: torch.repeat_interleave(double(3), 2),
    "roll float32": lambda: torch.roll(numbers(3), 1),
    "roll complex64": lambda: torch.roll(numbers(3, dtype=torch.complex64), 1),
    "adding in place float64": lambda: double(3).add_(1),
}


def main() -> None:
    """Print what each case raised; "" for nothing."""
    raised = {}
    for name, case in CASES.items():
        try:
            case()
            raised[name] = ""
        except Exception as error:
            raised[name] = f"{type(error).__name__}: {error}"
    torch.npu.synchronize()
    print(json.dumps(raised))


if __name__ == "__main__":
    main()

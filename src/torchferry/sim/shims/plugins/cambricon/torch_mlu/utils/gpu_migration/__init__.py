"""Importing this makes torch.cuda, `.cuda()`, "cuda" and "nccl" mean the simulated MLU."""

from .migration import apply_monkey_patches

__all__ = ["apply_monkey_patches"]

apply_monkey_patches()

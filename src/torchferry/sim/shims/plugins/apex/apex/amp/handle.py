"""amp.scale_loss: the loss times its scale, and gradients without it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from ._amp_state import _amp_state
from .casts import disable_casts
from .optimizer import stash_of


@contextmanager
def scale_loss(
    loss: Any,
    optimizers: Any,
    loss_id: int = 0,
    model: Any = None,
    delay_unscale: bool = False,
    delay_overflow_check: bool = False,
) -> Iterator[Any]:
    """Give the scaled loss to call backward on; at the end gradients are unscaled, and an overflow is noticed.

    With delay_unscale several backwards add up before the last one unscales their sum.
    """
    if not _amp_state.opt_properties.enabled:
        yield loss
        return
    listed = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
    stashes = [stash_of(optimizer) for optimizer in listed]
    scaler = _amp_state.loss_scalers[loss_id]
    scale = scaler.loss_scale()
    for stash in stashes:
        stash.before_backward()
    with disable_casts():
        if isinstance(loss, Tensor):
            yield loss.float() * scale if scale != 1.0 else loss.float()
        else:
            yield loss * scale
    if delay_unscale:
        for stash in stashes:
            stash.has_scaled_gradients = True
        return
    overflows = [stash.after_backward(scale, check=scaler.dynamic) for stash in stashes]
    if not delay_overflow_check and scaler.update_scale(any(overflows)):
        reduced = f"loss scaler {loss_id} reducing loss scale to {scaler.loss_scale()}"
        for stash in stashes:
            stash.skip_next_step = f"Gradient overflow.  Skipping step, {reduced}"

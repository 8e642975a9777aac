"""Lets tensors of the simulated device be printed: the text is made with operators and dtypes that the vendor may
lack, and looking at a tensor must not trip over the vendor's limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
import torch._tensor_str

from torchferry.sim import native


@contextmanager
def without_limits() -> Iterator[None]:
    """In this thread, let the device do what the vendor's does not."""
    before = native.set_gate(False)
    try:
        yield
    finally:
        native.set_gate(before)


def install() -> None:
    """Make repr() and str() of tensors free of the vendor's limits."""
    make_text = torch._tensor_str._str

    @wraps(make_text)
    def make_text_without_limits(*args: Any, **kwargs: Any) -> str:
        with without_limits():
            text: str = make_text(*args, **kwargs)  # type: ignore[no-untyped-call]
        return text

    torch._tensor_str._str = make_text_without_limits

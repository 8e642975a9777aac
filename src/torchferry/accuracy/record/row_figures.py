"""Figures of many pieces of memory at once, one to a row, by operators that every device has."""

from __future__ import annotations

import math

import torch

_HALF = 0xFFFFFFFF
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)  # as in csrc/statistics.cpp


def row_figures(
    elements: torch.Tensor, words: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Nine words for each row: finite, nan and zero elements, the two parts of the checksum; as floats: minimum,
    maximum, sum, sum of squares.

    `elements` and `words` are the same memory. `starts`: where in its tensor a row begins, `lengths`: how much of the
    row is filled, both in bytes.
    """
    numbers = torch.view_as_real(elements).flatten(1) if elements.is_complex() else elements
    size = numbers.element_size()
    numbers = _as_floats(numbers)
    is_filled = torch.arange(numbers.shape[1], device=numbers.device) < (lengths // size)[:, None]
    finite = torch.isfinite(numbers) & is_filled
    nans = (torch.isnan(numbers) & is_filled).sum(1)
    zeros = ((numbers == 0) & is_filled).sum(1)
    least, greatest = (torch.where(finite, numbers, limit) for limit in (math.inf, -math.inf))
    exact = torch.where(finite, numbers, 0.0).to(torch.float64)
    floats = [least.amin(1).double(), greatest.amax(1).double(), exact.sum(1), exact.square().sum(1)]
    counts = [finite.sum(1), nans, zeros, *_checksums(words, starts // 8, lengths)]
    return torch.cat([torch.stack(counts, 1), torch.stack(floats, 1).view(torch.int64)], 1)


def _as_floats(numbers: torch.Tensor) -> torch.Tensor:
    """Of a type that holds these, and that operators take."""
    if numbers.dtype in (torch.float32, torch.float64):
        return numbers
    return numbers.float() if numbers.is_floating_point() or numbers.element_size() == 1 else numbers.double()


def _checksums(
    words: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums over words of eight bytes, modulo 2 ** 64. What is not filled of the last word counts as zeros."""
    place = torch.arange(words.shape[1], device=words.device)
    whole, last = (lengths // 8)[:, None], ((lengths + 7) // 8)[:, None]
    filled = ((1 << (lengths % 8 * 8)) - 1)[:, None]
    kept = torch.where(place < whole, words, torch.where(place < last, words & filled, 0))
    keyed = kept ^ ((starts[:, None] + place + 1) * _STEP)
    products = (keyed & _HALF) * ((keyed >> 32) & _HALF)
    return torch.where(place < last, products, 0).sum(1), kept.sum(1)

"""Statistics of tensors on a device, the same figures as the host's, fetched together.

What is small is copied to the host without waiting for it, and looked at there when the copies have arrived: a copy is
one launch. What is large is summed up by operators of the device, which takes about thirty.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from torchferry.accuracy.native.statistics import ROW, statistics_into
from torchferry.accuracy.record.outside import Outside
from torchferry.accuracy.record.reading import flat, staging_for, synchronize
from torchferry.observe.modes import unobserved

_SMALL = 1 << 20  # bytes: to copy them and to look at them takes as long as thirty launches
_STAGING = 1 << 26
_BLOCK = 1 << 22  # words that are looked at together: intermediate results take several times as much
_MASK = (1 << 64) - 1
_HALF = 0xFFFFFFFF
_STEP, _FIRST, _SECOND = (
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
)  # as in csrc/statistics.cpp


class DeviceStatistics:
    """Leaves its figures on the device until they are fetched. `_SMALL` and less is copied."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int, torch.Tensor]] = []  # row, count, bytes, figures
        self._copied: list[tuple[int, int, Outside]] = []  # row, place, what is there
        self._staging: torch.Tensor | None = None
        self._used = 0  # bytes of it

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, tensor: torch.Tensor, outside: Outside, row: int) -> None:
        """Of this tensor, into the row when they are fetched."""
        with unobserved():
            values = flat(tensor, outside)
            if outside.nbytes <= _SMALL:
                self._copy(values, outside, row)
                return
            count = values.numel() * (2 if values.is_complex() else 1)
            self._waiting.append((row, count, outside.nbytes, _figures(values)))

    def _copy(self, values: torch.Tensor, outside: Outside, row: int) -> None:
        if self._staging is None:
            self._staging = staging_for(values.device, _STAGING)
        elif self._used + outside.nbytes > _STAGING:
            self._look_at_copies()
        place = self._staging[self._used : self._used + outside.nbytes]
        place.view(values.dtype).copy_(values, non_blocking=True)
        self._copied.append((row, self._used, outside))
        self._used += -(-outside.nbytes // 64) * 64

    def _look_at_copies(self) -> None:
        copied, self._copied, self._used = self._copied, [], 0
        if self._staging is None or not copied:
            return
        for kind in {outside.device.partition(":")[0] for _, _, outside in copied}:
            synchronize(kind)
        start = self._staging.data_ptr()
        for row, place, outside in copied:
            statistics_into(start + place, outside.dtype, outside.elements, row)

    def fetch(self) -> None:
        """Fill the rows."""
        self._look_at_copies()
        waiting, self._waiting = self._waiting, []
        by_device: dict[torch.device, list[tuple[int, int, int, torch.Tensor]]] = {}
        for each in waiting:
            by_device.setdefault(each[3].device, []).append(each)
        with unobserved():
            for group in by_device.values():
                fetched = torch.stack([figures for *_, figures in group]).cpu()
                for (row, count, nbytes, _), figures in zip(group, fetched, strict=True):
                    ctypes.memmove(row, _row(count, nbytes, figures), ROW.size)


def _figures(values: torch.Tensor) -> torch.Tensor:
    """Nine words: finite, nan and zero elements, the two parts of the checksum; as floats: minimum ... norm."""
    products, words = _checksums(values)
    numbers = torch.view_as_real(values) if values.is_complex() else values
    if numbers.dtype is torch.bool:
        numbers = numbers.to(torch.uint8)
    elif numbers.is_floating_point() and numbers.element_size() < 4:
        numbers = numbers.float()
    zeros, nans, finite = (numbers == 0).sum(), torch.isnan(numbers).sum(), torch.isfinite(numbers)
    least = greatest = numbers
    if numbers.is_floating_point():
        least, greatest = (torch.where(finite, numbers, limit) for limit in (math.inf, -math.inf))
        numbers = torch.where(finite, numbers, 0)
    sums = (numbers.sum(dtype=torch.float64), numbers.to(torch.float64).square().sum())
    floats = torch.stack([least.amin().double(), greatest.amax().double(), *sums])
    counts = torch.stack([finite.sum(), nans, zeros, products, words])
    return torch.cat([counts, floats.view(torch.int64)])


def _checksums(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums over words of eight bytes, modulo 2 ** 64."""
    raw = values.view(torch.uint8)
    if raw.storage_offset() % 8 or raw.numel() % 8:
        padded = torch.zeros(-(-raw.numel() // 8) * 8, dtype=torch.uint8, device=raw.device)
        padded[: raw.numel()] = raw
        raw = padded
    words = raw.view(torch.int64)
    products = torch.zeros((), dtype=torch.int64, device=raw.device)
    for start in range(0, words.numel(), _BLOCK):
        block = words[start : start + _BLOCK]
        keys = torch.arange(start + 1, start + 1 + block.numel(), device=raw.device) * _signed(_STEP)
        keyed = block ^ keys
        products = products + ((keyed & _HALF) * ((keyed >> 32) & _HALF)).sum()
    return products, words.sum()


def _row(count: int, nbytes: int, figures: Any) -> bytes:
    finite, nans, zeros, products, words = (int(figure) for figure in figures[:5])
    least, greatest, total, squares = (float(figure) for figure in figures[5:].view(torch.float64))
    if finite:
        extremes = (least, greatest, total / finite, math.sqrt(squares / finite))
    else:
        extremes = (0.0, 0.0, 0.0, 0.0)
    checksum = _mixed(products & _MASK, words & _MASK, nbytes)
    return ROW.pack(count, nans, count - finite - nans, zeros, *extremes, checksum)


def _mixed(products: int, words: int, nbytes: int) -> int:
    mixed = ((products ^ products >> 29) * _FIRST + words * _SECOND + nbytes * _STEP) & _MASK
    mixed = ((mixed ^ mixed >> 30) * _FIRST) & _MASK
    return mixed ^ mixed >> 31


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word

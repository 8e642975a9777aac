"""Statistics of tensors on a device by operators that every device has, for where no kernel of ours can be had.

A tensor is copied on the device, to a place beside others of its dtype: that is one launch, and nobody waits. When the
place is full, or when the figures are wanted, all that lies there is summed up at once, row by row, by some thirty
operators; the host adds up the rows of each tensor.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any, NamedTuple

import torch

from torchferry.accuracy.model import ROW
from torchferry.accuracy.native.library import CHECKSUM_STEP, mixed_checksum
from torchferry.accuracy.record.layout import TensorLayout, flat, pieces, synchronize
from torchferry.observe.modes import unobserved
from torchferry.readiness.cases.model import contiguous

# Figures of many pieces of memory at once, one to a row, by operators that every device has.

_HALF = 0xFFFFFFFF
_SIGNED_STEP = CHECKSUM_STEP - (1 << 64)


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
    # a type that holds these, and that operators take
    if numbers.dtype not in (torch.float32, torch.float64):
        is_small = numbers.is_floating_point() or size == 1
        numbers = numbers.float() if is_small else numbers.double()
    is_filled = torch.arange(numbers.shape[1], device=numbers.device) < (lengths // size)[:, None]
    finite = torch.isfinite(numbers) & is_filled
    nans = (torch.isnan(numbers) & is_filled).sum(1)
    zeros = ((numbers == 0) & is_filled).sum(1)
    least, greatest = (torch.where(finite, numbers, limit) for limit in (math.inf, -math.inf))
    exact = torch.where(finite, numbers, 0.0).to(torch.float64)
    floats = [least.amin(1).double(), greatest.amax(1).double(), exact.sum(1), exact.square().sum(1)]
    counts = [finite.sum(1), nans, zeros, *_checksums(words, starts // 8, lengths)]
    return torch.cat([torch.stack(counts, 1), torch.stack(floats, 1).view(torch.int64)], 1)


def _checksums(
    words: torch.Tensor, starts: torch.Tensor, lengths: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums over words of eight bytes, modulo 2 ** 64. What is not filled of the last word counts as zeros."""
    place = torch.arange(words.shape[1], device=words.device)
    whole, last = (lengths // 8)[:, None], ((lengths + 7) // 8)[:, None]
    filled = ((1 << (lengths % 8 * 8)) - 1)[:, None]
    kept = torch.where(place < whole, words, torch.where(place < last, words & filled, 0))
    keyed = kept ^ ((starts[:, None] + place + 1) * _SIGNED_STEP)
    products = (keyed & _HALF) * ((keyed >> 32) & _HALF)
    return torch.where(place < last, products, 0).sum(1), kept.sum(1)


_STAGING = 1 << 24  # bytes of one place; there is one for each dtype
_SMALL_ROW, _LARGE_ROW = 1 << 10, 1 << 16  # bytes: little is left empty, and few rows are fetched
_MOST_WAITING = 4096  # figures that may stay on a device
_BLOCK = 1 << 22  # elements that are looked at together: intermediate results take several times as much


class StagedFigures:
    """Of the tensors of one device: left there until they are fetched."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stagings: dict[tuple[str, int], _Staging] = {}
        self._stream: Any = None  # where the last of the device's work was put
        self._waiting = 0

    def put(self, tensor: torch.Tensor, layout: TensorLayout, row: int) -> None:
        """Put the figures of this tensor into the row when they are fetched."""
        self._waiting += 1
        with unobserved():
            self._follow()
            row_size = _LARGE_ROW if layout.nbytes >= _LARGE_ROW else _SMALL_ROW
            key = (layout.dtype, row_size)
            staging = self._stagings.get(key)
            if staging is None:
                staging = self._stagings[key] = _Staging(tensor.device, tensor.dtype, row_size)
            staging.put(tensor, layout, row)
        if self._waiting == _MOST_WAITING:
            self.fetch()

    def _follow(self) -> None:
        """What one stream has copied, another one may sum up only when it is there."""
        device = self._device
        find = getattr(getattr(torch, device.type, None), "current_stream", None)
        if find is None or device.type == "cpu":
            return
        stream = find(device)
        if self._stream is not None and self._stream != stream:
            synchronize(device.type)
        self._stream = stream

    def fetch(self) -> None:
        """Fill the rows of all tensors that were put."""
        if not self._waiting:
            return
        self._waiting = 0
        with unobserved():
            self._follow()
            for staging in self._stagings.values():
                staging.fetch()


class _Tensor(NamedTuple):
    address: int  # where they go
    numbers: int  # of which it consists
    nbytes: int
    first: int  # of its rows
    rows: int


class _Staging:
    """Memory of a device for tensors of one dtype, each from the beginning of a row."""

    def __init__(self, device: torch.device, dtype: torch.dtype, row_size: int) -> None:
        self.device = device
        self._row_size = row_size
        self._rows = max(1, _STAGING // row_size)
        memory = torch.empty(self._rows * row_size, dtype=torch.uint8, device=device)
        self._words = memory.view(torch.int64).view(self._rows, -1)
        self._elements = memory.view(dtype)
        self._size = self._elements.element_size()
        self._used = 0  # rows
        self._pieces: list[tuple[int, int]] = []  # in these: where in its tensor each begins, and its bytes
        self._summed = 0  # rows before these
        self._figures: list[torch.Tensor] = []
        self._waiting: list[_Tensor] = []

    def put(self, tensor: torch.Tensor, layout: TensorLayout, address: int) -> None:
        """Copy a tensor; a large one may take several turns."""
        rows = -(-layout.nbytes // self._row_size)
        if rows > self._rows - self._used:
            self._sum_up()
        first = self._summed + self._used
        self._waiting.append(_Tensor(address, layout.numbers, layout.nbytes, first, rows))
        if rows <= self._rows:
            source = pieces(tensor, layout)
            stride = source.stride() if layout.is_dense else contiguous(source.shape)
            offset = self._used * self._row_size // self._size
            self._elements.as_strided(source.shape, stride, offset).copy_(source)
            self._add(0, layout.nbytes, rows)
            return
        elements = flat(tensor, layout)
        at_once = self._rows * self._row_size
        for start in range(0, layout.nbytes, at_once):
            self._sum_up()
            nbytes = min(at_once, layout.nbytes - start)
            part = elements[start // self._size : (start + nbytes) // self._size]
            self._elements[: part.numel()].copy_(part)
            self._add(start, nbytes, -(-nbytes // self._row_size))

    def _add(self, start: int, nbytes: int, rows: int) -> None:
        self._pieces.append((start, nbytes))
        self._used += rows

    def _sum_up(self) -> None:
        if not self._used:
            return
        starts, lengths = _rows_of(self._pieces, self._row_size)
        a_block = max(1, _BLOCK * self._size // self._row_size)
        elements = self._elements.view(self._rows, -1)
        for first in range(0, self._used, a_block):
            rows = slice(first, min(first + a_block, self._used))
            places = (starts[rows].to(self.device), lengths[rows].to(self.device))
            self._figures.append(row_figures(elements[rows], self._words[rows], *places))
        self._summed += self._used
        self._used, self._pieces = 0, []

    def fetch(self) -> None:
        """Fill the rows of all that were put here."""
        self._sum_up()
        waiting, self._waiting, self._summed = self._waiting, [], 0
        if not waiting:
            return
        figures = torch.cat(self._figures).cpu()
        self._figures = []
        counts = figures[:, :5].tolist()
        floats = figures[:, 5:].contiguous().view(torch.float64).tolist()
        for tensor in waiting:
            rows = slice(tensor.first, tensor.first + tensor.rows)
            ctypes.memmove(tensor.address, _packed(tensor, counts[rows], floats[rows]), ROW.size)


def _rows_of(parts: list[tuple[int, int]], row_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of each row of these pieces: where in its tensor it begins, and how much of it is filled, in bytes."""
    whole = torch.tensor(parts, dtype=torch.int64)
    rows = (whole[:, 1] + row_size - 1) // row_size
    piece = torch.repeat_interleave(rows)  # 0 0 0 1 2 2 for 3, 1 and 2 rows
    before = (torch.arange(piece.numel()) - (rows.cumsum(0) - rows)[piece]) * row_size
    return whole[piece, 0] + before, (whole[piece, 1] - before).clamp(max=row_size)


def _packed(tensor: _Tensor, counts: list[list[int]], floats: list[list[float]]) -> bytes:
    if len(counts) == 1:
        (finite, nans, zeros, products, words), (least, greatest, total, squares) = counts[0], floats[0]
    else:
        finite, nans, zeros, products, words = (sum(column) for column in zip(*counts, strict=True))
        lows, highs, totals, all_squares = zip(*floats, strict=True)
        least, greatest, total, squares = min(lows), max(highs), sum(totals), sum(all_squares)
    extremes = (0.0, 0.0, 0.0, 0.0)
    if finite:
        extremes = (least, greatest, total / finite, math.sqrt(squares / finite))
    infinities = tensor.numbers - finite - nans
    checksum = mixed_checksum(products, words, tensor.nbytes)
    return ROW.pack(tensor.numbers, nans, infinities, zeros, *extremes, checksum)

"""Figures by which two runs can be compared tensor by tensor, though neither has the other's at hand.

The contents are taken in the order of the indices, whatever the layout in memory, so equal checksums mean equal
tensors. A sketch tells how far two tensors are apart: eight sums of the elements, each with other random signs, which
are the same in every process.
"""

from __future__ import annotations

import ctypes
import functools
import random
from collections.abc import Sequence
from typing import NamedTuple

import torch

from torchferry.accuracy.file.writer import StatisticsWriter
from torchferry.accuracy.model import ROW
from torchferry.accuracy.native.library import decode, statistics_into
from torchferry.accuracy.record.layout import NOWHERE, UNKNOWN, Content, KnownContents, TensorLayout
from torchferry.accuracy.record.sinks import StatisticsSink, refuse_capturing
from torchferry.observe.modes import unobserved
from torchferry.observe.operators import memory_of, why_unreadable

PROJECTIONS = 8
_WIDTH = 4096  # elements that are folded onto each other, with a sign for each fold
_FOLDS_AT_ONCE = 16  # so that what is converted to float64 stays in the cache
_FOLD_SIGNS = 8192  # then they repeat; a multiple of the folds at once
_SEED = 20210101  # of the signs, which are the same in every process
_MASK, _FACTOR = (1 << 64) - 1, 0x9E3779B97F4A7C15  # for the checksum of several parts


def dense_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The dense tensors that hold the content: of a sparse one, of a subclass that wraps others. The last holds the
    numbers."""
    local = getattr(tensor, "_local_tensor", None)  # DTensor: what this process holds of it
    if isinstance(local, torch.Tensor):
        return dense_parts(local)
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        return [part for name in flatten()[0] for part in dense_parts(getattr(tensor, name))]
    if tensor.layout == torch.sparse_coo:
        whole = tensor.detach().coalesce()
        return [whole.indices(), whole.values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    if tensor.is_quantized:
        return [tensor.int_repr()]
    return [tensor]


def flattened(tensor: torch.Tensor) -> torch.Tensor:
    """The elements on the host, in the order of the indices, complex ones as pairs."""
    if tensor.device.type == "meta":
        return torch.zeros(0)
    plain = tensor.detach().cpu()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    return plain.resolve_neg().contiguous().view(-1)


class Sketch(NamedTuple):
    """What is kept of some numbers."""

    square: float  # the sum of their squares
    projections: Sequence[float]  # two tensors' distance is the rms of the differences


def sketch_of(contents: Sequence[torch.Tensor]) -> Sketch:
    """Of flat tensors, as if they were one; call it inside `unobserved()`."""
    width = min(_WIDTH, max((flat.numel() for flat in contents), default=0))
    folded = torch.zeros(width, dtype=torch.float64)
    square = sum(_fold(flat, folded) for flat in contents)
    signs = _random_signs(PROJECTIONS * _WIDTH).view(PROJECTIONS, _WIDTH)
    return Sketch(square, torch.mv(signs[:, :width], folded).tolist())


def _fold(flat: torch.Tensor, folded: torch.Tensor) -> float:
    """Add the elements, 4096 at a time, each time with another sign; answers the sum of squares.

    The signs are independent, so the expected square of a projection of the sum is the square of the norm.
    """
    square = 0.0
    whole = flat.numel() - flat.numel() % _WIDTH
    for start in range(0, whole, _WIDTH * _FOLDS_AT_ONCE):
        block = flat[start : min(start + _WIDTH * _FOLDS_AT_ONCE, whole)].double()
        folds = block.view(-1, _WIDTH)
        first = start // _WIDTH % _FOLD_SIGNS
        folded.addmv_(folds.t(), _random_signs(_FOLD_SIGNS)[first : first + len(folds)])
        square += torch.dot(block, block).item()
    rest = flat[whole:].double()
    folded[: rest.numel()].add_(rest)
    return square + torch.dot(rest, rest).item()


@functools.lru_cache(maxsize=2)
def _random_signs(count: int) -> torch.Tensor:
    """Not from PyTorch's generator, nor from Python's shared one: the program's own draws stay as they are."""
    own = random.Random(_SEED + count)
    return torch.tensor([1.0 if own.getrandbits(1) else -1.0 for _ in range(count)], dtype=torch.float64)


class SketchSink(StatisticsSink):
    """Rows of figures, each with a sketch, and with the memory that the tensor lay in."""

    def __init__(self, contents: KnownContents, writer: StatisticsWriter) -> None:
        super().__init__(contents, writer)
        self._scratch = ctypes.addressof(self._row)

    def content(self, tensor: torch.Tensor, layout: TensorLayout, is_output: bool) -> Content:
        if not layout.nbytes:
            return self._empty()
        storage = self._contents.find_or_storage(tensor, layout)
        if isinstance(storage, Content):
            return storage
        refuse_capturing(layout)
        memory = memory_of(tensor)
        if not memory:
            raise RuntimeError("no memory")
        with unobserved():
            flat = flattened(tensor)
            checksum = self._summed_up([flat])
            last = storage.last(tensor, layout) if storage.is_shifting else None
            if last is not None and last.checksum == checksum:
                return last
            content = storage.keep(tensor, layout, self._put(memory, flat))
        content.checksum = checksum
        return content

    def unusual(self, tensor: torch.Tensor) -> Content:
        """The content of a tensor that has no memory of its own: sparse, quantized. It is read each time."""
        if why_unreadable(tensor):
            return UNKNOWN
        try:
            with unobserved():
                parts = [flattened(part) for part in dense_parts(tensor)]
                self._summed_up(parts)
                return Content(self._put(0, parts[-1]), 0, NOWHERE, 0)
        except Exception:  # a tensor that we can't read must not end the program
            return UNKNOWN

    def _summed_up(self, parts: Sequence[torch.Tensor]) -> int:
        """Leave the statistics of the last part in our row, with a checksum of all."""
        checksum = 0
        for flat in parts:
            dtype = str(flat.dtype).removeprefix("torch.")
            statistics_into(flat.data_ptr(), dtype, flat.numel(), self._scratch)
            checksum = (checksum * _FACTOR + decode(self._row).checksum) & _MASK
        if len(parts) > 1:
            ROW.pack_into(self._row, 0, *ROW.unpack(self._row)[:-1], checksum)
        return checksum

    def _put(self, memory: int, flat: torch.Tensor) -> int:
        number, row = self._writer.row()
        ctypes.memmove(row, self._row, ROW.size)
        self._writer.sketch(number, memory, sketch_of([flat]).projections)
        return number

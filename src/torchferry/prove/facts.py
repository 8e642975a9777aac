"""What a proof keeps of a tensor: checksum, norm and projections, at little more than the cost of reading it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import random
from typing import Any

import torch

from torchferry.observe.tensors import has_own_operators, memory_of, sizes_of, why_unreadable
from torchferry.prove.model import TensorFacts

PROJECTIONS = 8
_WIDTH = 4096  # elements that are folded onto each other, with a sign for each fold
_FOLDS_AT_ONCE = 16  # so that what is converted to float64 stays in the cache
_FOLD_SIGNS = 8192  # then they repeat; a multiple of the folds at once
_CHECKSUM_DIGITS = 16
_SEED = 20210101  # of the signs, which are the same in every process


def tensor_facts(tensor: torch.Tensor) -> TensorFacts:
    """The facts of a tensor of any layout, dtype and device; call it inside `unobserved()`."""
    checksum = hashlib.sha256(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
    contents = []
    for part in _plain_parts(tensor):
        flat = _flat(part)
        _add_bytes(checksum, flat)
        if part.dtype == tensor.dtype or tensor.is_quantized:  # not the indices of a sparse tensor
            contents.append(flat)
    width = min(_WIDTH, max((flat.numel() for flat in contents), default=0))
    sketch = torch.zeros(width, dtype=torch.float64)
    square = sum(_fold(flat, sketch) for flat in contents)
    projections = torch.mv(_signs()[:, :width], sketch).tolist()
    return TensorFacts(
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        checksum.hexdigest()[:_CHECKSUM_DIGITS],
        float(square**0.5),
        tuple(projections),
    )


def _plain_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The dense tensors that hold the content: of a sparse one, of a subclass that wraps others."""
    local = getattr(tensor, "_local_tensor", None)  # DTensor: what this process holds of it
    if isinstance(local, torch.Tensor):
        return _plain_parts(local)
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        return [part for name in flatten()[0] for part in _plain_parts(getattr(tensor, name))]
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


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements on the host, in the order of the indices, whatever the layout in memory."""
    if tensor.device.type == "meta":
        return torch.zeros(0)
    plain = tensor.detach().cpu()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    return plain.resolve_neg().contiguous().view(-1)


def _add_bytes(checksum: Any, flat: torch.Tensor) -> None:
    size = flat.numel() * flat.element_size()
    if size:
        checksum.update((ctypes.c_char * size).from_address(flat.data_ptr()))


def _fold(flat: torch.Tensor, sketch: torch.Tensor) -> float:
    """Add the elements to the sketch, 4096 at a time, each time with another sign; answers the sum of squares.

    The signs are independent, so the expected square of a projection of the sketch is the square of the norm.
    """
    square = 0.0
    whole = flat.numel() - flat.numel() % _WIDTH
    for start in range(0, whole, _WIDTH * _FOLDS_AT_ONCE):
        block = flat[start : min(start + _WIDTH * _FOLDS_AT_ONCE, whole)].double()
        folds = block.view(-1, _WIDTH)
        first = start // _WIDTH % _FOLD_SIGNS
        sketch.addmv_(folds.t(), _fold_signs()[first : first + len(folds)])
        square += torch.dot(block, block).item()
    rest = flat[whole:].double()
    sketch[: rest.numel()].add_(rest)
    return square + torch.dot(rest, rest).item()


@functools.lru_cache(maxsize=1)
def _fold_signs() -> torch.Tensor:
    return _random_signs(_FOLD_SIGNS)


@functools.lru_cache(maxsize=1)
def _signs() -> torch.Tensor:
    return _random_signs(PROJECTIONS * _WIDTH).view(PROJECTIONS, _WIDTH)


def _random_signs(count: int) -> torch.Tensor:
    """Not from PyTorch's generator, nor from Python's shared one: the program's own draws stay as they are."""
    own = random.Random(_SEED + count)
    return torch.tensor([1.0 if own.getrandbits(1) else -1.0 for _ in range(count)], dtype=torch.float64)


# What the operator recorder writes of a tensor: its facts, where it lives, and why it could not be
# read.

Fact = list[
    Any
]  # [checksum, dtype, shape, norm, projections, on the device, role, memory, why it was not read]


def fact_of(tensor: torch.Tensor, role: str, unread: str = "") -> Fact:
    """The facts of a tensor; where it can't be read, those of its outside. Call it inside `unobserved()`."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    unread = unread or why_unreadable(tensor)
    outside: Fact = [on_device(tensor), role, 0 if has_own_operators(type(tensor)) else memory_of(tensor)]
    if not unread:
        try:
            facts = tensor_facts(tensor)
            return [facts.checksum, dtype, facts.shape, facts.norm, facts.projections, *outside, ""]
        except Exception as error:  # a tensor that we can't read must not end the program
            unread = type(error).__name__
    return ["", dtype, [int(size) for size in sizes_of(tensor)], 0.0, [], *outside, unread]


def on_device(tensor: torch.Tensor) -> bool:
    """Whether the tensor lives on an accelerator."""
    return tensor.device.type not in ("cpu", "meta")

"""What a proof keeps of a tensor: checksum, norm and projections, at little more than the cost of reading it."""

from __future__ import annotations

import ctypes
import hashlib

import torch

from torchferry.accuracy.record.sketches import dense_parts, flattened, sketch_of
from torchferry.prove.model import TensorFacts

_CHECKSUM_DIGITS = 16


def tensor_facts(tensor: torch.Tensor) -> TensorFacts:
    """The facts of a tensor of any layout, dtype and device; call it inside `unobserved()`."""
    checksum = hashlib.sha256(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
    contents = []
    for part in dense_parts(tensor):
        flat = flattened(part)
        size = flat.numel() * flat.element_size()
        if size:
            checksum.update((ctypes.c_char * size).from_address(flat.data_ptr()))
        if part.dtype == tensor.dtype or tensor.is_quantized:  # not the indices of a sparse tensor
            contents.append(flat)
    sketch = sketch_of(contents)
    return TensorFacts(
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        checksum.hexdigest()[:_CHECKSUM_DIGITS],
        float(sketch.square**0.5),
        tuple(sketch.projections),
    )

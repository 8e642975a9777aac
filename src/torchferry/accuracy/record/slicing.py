"""Which slices of large tensors are kept in the place of all their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchferry.units import size

if TYPE_CHECKING:
    import torch

    from torchferry.accuracy.record.layout import TensorLayout


class Cut(NamedTuple):
    """Of so many slices along a dimension, the first; so many of them are kept."""

    dimension: int
    step: int
    slices: int

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The slices of a tensor without repetitions, one after the other. Call it inside `unobserved()`."""
        where = (*(slice(None),) * self.dimension, slice(0, self.step * self.slices, self.step))
        chosen = tensor[where]
        return chosen.resolve_conj().resolve_neg().contiguous()


class Slicing(NamedTuple):
    """What a user wants to have of large tensors."""

    over: int  # bytes that make a tensor large
    slices: int

    def describe(self) -> str:
        """In words, for the record's head."""
        return f"{self.slices} slices of tensors over {size(self.over)}"

    def of(self, layout: TensorLayout) -> Cut | None:
        """The slices of tensors that look like this; None: all elements are kept. They are cut along the first dimension
        that has more of them: as a rule samples of a batch, or rows of a matrix."""
        if layout.nbytes <= self.over:
            return None
        repeated = (
            length > 1 and step == 0 for length, step in zip(layout.shape, layout.stride, strict=True)
        )
        sizes = [
            1 if is_repeated else length for length, is_repeated in zip(layout.shape, repeated, strict=True)
        ]
        for dimension, length in enumerate(sizes):
            if length > self.slices:
                return Cut(dimension, length // self.slices, self.slices)
        return None

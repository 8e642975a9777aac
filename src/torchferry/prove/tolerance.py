"""How far two tensors may be apart, and how far they are. Imports no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchferry.prove.model import TensorFacts

# dtype -> (relative, absolute), those of torch.testing.assert_close; a dtype that is not here must be equal
_DEFAULTS = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


@dataclass(frozen=True)
class Tolerance:
    """What a user allows; None: what the dtype allows."""

    rtol: float | None = None
    atol: float | None = None

    def allows(self, reference: TensorFacts, migrated: TensorFacts) -> float:
        """The largest distance; of two dtypes, the coarser one decides.

        Element by element it would be |a - b| <= atol + rtol * |a|; this is the same over the whole tensor.
        """
        defaults = [_DEFAULTS.get(facts.dtype, (0.0, 0.0)) for facts in (reference, migrated)]
        inexact = all(facts.dtype in _DEFAULTS for facts in (reference, migrated))
        rtol = max(default[0] for default in defaults) if self.rtol is None else self.rtol
        atol = max(default[1] for default in defaults) if self.atol is None else self.atol
        norm = reference.norm if math.isfinite(reference.norm) else 0.0
        return atol * math.sqrt(math.prod(reference.shape)) + rtol * norm if inexact else 0.0


EXACT = Tolerance(0.0, 0.0)


def distance(reference: TensorFacts, migrated: TensorFacts) -> float:
    """The l2 distance, estimated; inf where one of the two is not finite."""
    if reference.checksum == migrated.checksum:
        return 0.0
    if not (math.isfinite(reference.norm) and math.isfinite(migrated.norm)):
        return math.inf
    apart = [
        (one - other) ** 2 for one, other in zip(reference.projections, migrated.projections, strict=True)
    ]
    estimate = math.sqrt(sum(apart) / len(apart))
    return max(estimate, abs(reference.norm - migrated.norm))


def relative(apart: float, reference: TensorFacts | None) -> float:
    """A distance as a share of the reference's norm."""
    if apart == 0:
        return 0.0
    if reference is None or not reference.norm or not math.isfinite(reference.norm):
        return math.inf
    return apart / reference.norm

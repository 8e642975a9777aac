"""What a run has shown: curves over its steps, and figures at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

FORMAT, VERSION = "torchferry-evidence", 1


@dataclass(frozen=True)
class Evidence:
    """The accuracy and the speed of one run."""

    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # loss, one value for each step
    metrics: Mapping[str, float] = field(default_factory=dict)  # acc1, images/s
    source: str = ""  # what it was read from
    simulated: bool | None = None  # None: the file does not say

    @property
    def is_empty(self) -> bool:
        return not self.curves and not self.metrics

    def to_json(self) -> str:
        """The form in which a delivery keeps it."""
        import json

        def plain(value: float) -> float | str:
            return value if math.isfinite(value) else str(value)

        content = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "simulated": self.simulated,
            "curves": {name: list(map(plain, curve)) for name, curve in self.curves.items()},
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

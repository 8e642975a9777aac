"""What a run has shown: curves over its steps, and figures at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

FORMAT, VERSION = "torchferry-evidence", 1
Step = tuple[int, int]  # epoch and step, as the run has numbered them


@dataclass(frozen=True)
class Curve:
    """A value for each step."""

    values: tuple[float, ...]
    steps: tuple[Step, ...] = ()  # of each value; (): the run has not numbered them


@dataclass(frozen=True)
class Evidence:
    """The accuracy and the speed of one run."""

    curves: Mapping[str, Curve] = field(default_factory=dict)  # loss
    metrics: Mapping[str, float] = field(default_factory=dict)  # acc1, images/s
    source: str = ""  # what it was read from
    simulated: bool | None = None  # None: the file does not say

    @property
    def is_empty(self) -> bool:
        return not self.curves and not self.metrics

    def to_json(self) -> str:
        """The form in which a delivery keeps what was no text."""
        import json

        def plain(value: float) -> float | str:
            return value if math.isfinite(value) else str(value)

        content = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "simulated": self.simulated,
            "curves": {name: list(map(plain, curve.values)) for name, curve in self.curves.items()},
            "steps": {name: curve.steps for name, curve in self.curves.items() if curve.steps},
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def numbered(values: list[float], steps: list[Step | None]) -> Curve:
    """A curve with its steps, where each value has one and no two have the same."""
    known = [step for step in steps if step is not None]
    whole = len(known) == len(values) and len(set(known)) == len(known)
    return Curve(tuple(values), tuple(known) if whole else ())

"""What an export has made and found out, as it passes from one process to the other. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum

from torchferry.text import Text


@dataclass(frozen=True)
class Port:
    """An input or output of the ONNX model."""

    name: str
    dtype: str
    shape: tuple[str, ...]  # numbers, and names for sizes that are free

    @property
    def described(self) -> str:
        return f"[{', '.join(self.shape)}] {self.dtype}"


class Verdict(str, Enum):
    """What a run says about an output."""

    SAME = "same"
    ROUNDING = "rounding"  # too far apart, but both about as near to double precision
    EMPTY = "empty"  # nothing but zeros and NaN: a wrong model could give them as well
    DIFFERENT = "different"
    CHAOTIC = "chaotic"  # rounding, so much of it that a mistake could hide in it
    RANDOM = "random"  # PyTorch gives another result each time
    FAILED = "failed"  # onnxruntime raised an error, or the shape is another one


@dataclass(frozen=True)
class Check:
    """One output of one run on random inputs: onnxruntime against PyTorch."""

    sizes: Mapping[str, int]  # of the free sizes
    output: str
    error: float  # the largest difference
    scale: float  # the largest value of PyTorch's
    verdict: Verdict
    pytorch_off: float | None = None  # the largest difference to double precision, where that was asked for
    onnx_off: float | None = None
    problem: str = ""

    @property
    def is_good(self) -> bool:
        return self.verdict in (Verdict.SAME, Verdict.ROUNDING, Verdict.EMPTY)

    @property
    def relative(self) -> float:
        """The difference as a part of the largest value."""
        return self.error / self.scale if self.scale else self.error


@dataclass(frozen=True)
class Exported:
    """The result."""

    output: str
    opset: int
    way: str
    bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    checks: tuple[Check, ...]
    operators: Mapping[str, int]
    notes: tuple[Text, ...]

    @property
    def is_good(self) -> bool:
        return all(check.is_good for check in self.checks)

    def encode(self) -> str:
        """As text, for another process."""
        return json.dumps(asdict(self))


def decode(text: str) -> Exported:
    """What `encode` has written."""
    given = json.loads(text)
    return Exported(
        **{
            **given,
            "inputs": tuple(Port(**{**port, "shape": tuple(port["shape"])}) for port in given["inputs"]),
            "outputs": tuple(Port(**{**port, "shape": tuple(port["shape"])}) for port in given["outputs"]),
            "checks": tuple(
                Check(**{**check, "verdict": Verdict(check["verdict"])}) for check in given["checks"]
            ),
            "notes": tuple(Text(*note) for note in given["notes"]),
        }
    )

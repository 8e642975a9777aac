"""What an export has made and found out, as it passes from one process to the other. Imports no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

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


@dataclass(frozen=True)
class Check:
    """One run on random inputs: onnxruntime against PyTorch."""

    sizes: Mapping[str, int]  # of the free sizes
    output: str
    error: float  # the largest difference
    scale: float  # the largest value of PyTorch's
    is_good: bool
    problem: str = ""


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
            "checks": tuple(Check(**check) for check in given["checks"]),
            "notes": tuple(Text(*note) for note in given["notes"]),
        }
    )

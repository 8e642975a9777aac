"""Small records of a real computation, written as a recorder writes them; kernels may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tests.accuracy.file.making import put
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord, TensorRef

Wrong = Mapping[str, Callable[[torch.Tensor], torch.Tensor]]  # operator -> what becomes of its result
GOLDEN = RecordHeader(Kept.TENSORS, "train.py --lr 0.1", "cuda", "2.13.0")
MINE = replace(GOLDEN, device="npu", vendor="ascend", simulated=True)
OPERATORS: dict[str, Any] = {
    "aten::mm": torch.mm,
    "aten::relu": torch.relu,
    "aten::exp": torch.exp,
    "aten::add.Tensor": torch.add,
    "aten::mean": torch.mean,
    "aten::clone": torch.clone,
    "aten::bernoulli": torch.bernoulli,
}
_ARGUMENTS = {"aten::mm": ("self", "mat2"), "aten::add.Tensor": ("self", "other")}


class Writing:
    """Computes, and writes down each call."""

    def __init__(self, path: Path, header: RecordHeader, wrong: Wrong | None = None) -> None:
        self._writer = RecordWriter(path, header)
        self._device = f"{header.device}:0"
        self._wrong = wrong or {}
        self._number = 0
        self.step = 1

    def __call__(
        self,
        operator: str,
        *inputs: torch.Tensor,
        module: str = "",
        model: str = "Net",
        place: str = "train.py:7",
    ) -> torch.Tensor:
        """Make a call; the next one sees its result, right or wrong."""
        self._number += 1
        result: torch.Tensor = OPERATORS[operator](*inputs)
        result = self._wrong.get(operator, torch.Tensor.clone)(result)
        names = _ARGUMENTS.get(operator, ("self",))
        records = tuple(self._put(each, f"input/{name}") for name, each in zip(names, inputs, strict=True))
        arguments = tuple((name, TensorRef(at)) for at, name in enumerate(names))
        self._writer.write(
            Call(
                self._number,
                operator,
                self.step,
                "forward",
                model if module else "",
                module,
                place,
                arguments=arguments,
                inputs=records,
                outputs=(self._put(result, "output/output_0"),),
                results=TensorRef(0),
            )
        )
        return result

    def _put(self, tensor: torch.Tensor, name: str) -> TensorRecord:
        return replace(put(self._writer, tensor, name), device=self._device)

    def close(self) -> None:
        self._writer.close()


def write_network(
    path: Path,
    header: RecordHeader = GOLDEN,
    wrong: Wrong | None = None,
    *,
    steps: int = 1,
    noise: float = 0.0,
    extra: bool = False,
) -> Path:
    """Two layers and a loss; `noise` is in the input, `extra` puts a copy before the second layer."""
    source = torch.Generator().manual_seed(0)
    first, second = (torch.randn(32, 32, generator=source) / 6 for _ in range(2))
    call = Writing(path, header, wrong)
    for step in range(1, steps + 1):
        call.step = step
        x = torch.randn(16, 32, generator=source)
        x = call("aten::mm", x * (1 + noise), first, module="layer1.fc")
        x = call("aten::relu", x, module="layer1")
        if extra:
            x = call("aten::clone", x, module="layer2")
        x = call("aten::mm", x, second, module="layer2.fc")
        x = call("aten::exp", x, module="layer2", place="model.py:31")
        call("aten::mean", x)
    call.close()
    return path


def zero_tail(result: torch.Tensor) -> torch.Tensor:
    """A kernel that does not write the last elements."""
    result = result.clone()
    result.view(-1)[-100:] = 0
    return result

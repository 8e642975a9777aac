"""Records a few lines of PyTorch, and judges what they have computed, or what somebody says they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Judgement
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord
from torchferry.accuracy.record.recorder import Recorder


def record(path: Path, program: Callable[[], Any]) -> Record:
    """What the program calls."""
    recorder = Recorder(path, RecordHeader(Kept.TENSORS, "a test", "cpu", torch.__version__))
    recorder.start()
    try:
        program()
    finally:
        recorder.stop()
    return open_record(path)


def call_of(recorded: Record, operator: str) -> Call:
    """The last call of an operator."""
    return next(call for call in reversed(list(recorded.calls)) if call.operator == f"aten::{operator}")


class Claimed:
    """A record in which some results are others than those that were computed."""

    def __init__(self, recorded: Record, claims: dict[tuple[int, str], torch.Tensor]) -> None:
        self._recorded, self._claims = recorded, claims

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        # the offset of a claim is its number, negative: no place in a file is
        if tensor.offset is not None and tensor.offset < 0:
            return list(self._claims.values())[-tensor.offset - 1].clone()
        return self._recorded.tensor(tensor)

    def part(
        self, tensor: TensorRecord, where: tuple[slice, ...], rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        if tensor.offset is not None and tensor.offset < 0:
            return self.tensor(tensor)[where].clone()
        return self._recorded.part(tensor, where, rows)

    def release(self) -> None:
        self._recorded.release()


def claimed(recorded: Record, call: Call, result: torch.Tensor, output: int = 0) -> tuple[Call, Claimed]:
    """As if the call had given this result: the call, and where its tensors come from."""
    one = replace(
        call.outputs[output], offset=-1, content=0, shape=tuple(result.shape), stride=result.stride()
    )
    outputs = [*call.outputs]
    outputs[output] = one
    return replace(call, outputs=tuple(outputs)), Claimed(recorded, {(call.number, one.name): result})


def judge_claim(recorded: Record, call: Call, result: torch.Tensor, output: int = 0) -> Judgement:
    """What is said of such a call."""
    wrong, source = claimed(recorded, call, result, output)
    return Judge(source, None).judge(CallPair(wrong, None))


@contextmanager
def seeded() -> Iterator[None]:
    """With the same random numbers each time, and without a trace afterwards."""
    state = torch.get_rng_state()
    torch.manual_seed(0)
    yield
    torch.set_rng_state(state)

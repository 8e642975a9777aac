"""What the recorder writes, and that the program does not notice it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from torchferry.accuracy.compare.comparing import compare_files  # noqa: E402
from torchferry.proof.operators import TracedCall, read_trace  # noqa: E402
from torchferry.proof.recording import operator_recorder  # noqa: E402

from .programs import TRAININGS  # noqa: E402


def recorded(file: Path, program: Callable[[], object]) -> tuple[TracedCall, ...]:
    """The calls that a program leaves."""
    recorder = operator_recorder(file)
    recorder.start()
    try:
        program()
    finally:
        recorder.stop()
    trace = read_trace(file)
    assert trace.whole
    return trace.calls


@pytest.mark.parametrize("training", TRAININGS)
def test_the_training_stays_the_same(tmp_path: Path, training: str) -> None:
    """The same parameters, gradients and random numbers with the recorder as without it."""

    def state(record: bool) -> list[Any]:
        random.seed(4)
        program = TRAININGS[training]("cpu")
        program.step()
        if record:
            recorded(tmp_path / "operators", program.step)
        else:
            program.step()
        program.step()
        parameters = list(program.model.parameters())
        gradients = [parameter.grad for parameter in parameters]
        return [*parameters, *gradients, torch.get_rng_state(), torch.tensor([random.random()])]

    assert all(torch.equal(one, other) for one, other in zip(state(False), state(True), strict=True))


def test_one_call(tmp_path: Path) -> None:
    made, added = recorded(tmp_path / "operators", lambda: torch.ones(2, 3).add_(2, alpha=3))
    assert (made.operator, made.inputs, made.arguments) == ("aten::ones", (), "[2, 3]")
    assert (added.operator, added.arguments) == ("aten::add_.Tensor", "2, 3")
    assert added.inputs == made.outputs
    (result,) = added.outputs
    assert added.written == {result.checksum} != {made.outputs[0].checksum}
    assert result.facts.norm == pytest.approx(7 * 6**0.5)
    assert made.place.startswith("tests/proof/operators/test_recorder.py:")


def test_the_layout_in_memory_does_not_count(tmp_path: Path) -> None:
    image, row = torch.randn(1, 3, 4, 4), torch.randn(4)
    calls = recorded(
        tmp_path / "operators",
        lambda: (
            image + 0,
            image.contiguous(memory_format=torch.channels_last) + 0,
            image.mT.mT + 0,
            row.expand(3, 4) + 0,
            row.repeat(3, 1) + 0,
        ),
    )
    read = [call.inputs[0].checksum for call in calls if call.operator == "aten::add.Tensor"]
    assert [len(set(read[:3])), len(set(read[3:]))] == [1, 1] and read[0] != read[3]


def test_a_transposed_tensor_is_another_one(tmp_path: Path) -> None:
    square = torch.randn(4, 4)
    calls = recorded(tmp_path / "operators", lambda: (square + 0, square.t() + 0))
    assert len({call.inputs[0].checksum for call in calls if call.operator == "aten::add.Tensor"}) == 2


def test_every_phase_is_seen(tmp_path: Path) -> None:
    training = TRAININGS["ConvNet"]("cpu")
    calls = recorded(tmp_path / "operators", training.step)
    assert {
        ("forward", "aten::convolution"),
        ("backward", "aten::convolution_backward"),
        ("optimizer", "aten::add_.Tensor"),
    } <= {(call.phase, call.operator) for call in calls}


def test_modules_are_named_again_after_one_has_failed(tmp_path: Path) -> None:
    class Fails(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError

    def program() -> None:
        for model in (nn.Sequential(nn.ReLU(), Fails()), nn.Sequential(nn.ReLU(), nn.Tanh())):
            try:
                model(torch.ones(2))
            except ValueError:
                torch.ones(2).sin()

    modules = {call.operator: call.module for call in recorded(tmp_path / "operators", program)}
    assert (modules["aten::relu"], modules["aten::sin"], modules["aten::tanh"]) == ("0", "", "1")


def fake_tensor() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        torch.ones(3).sin()


def wrapped_tensor() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    TwoTensor(torch.ones(3), torch.zeros(3)).cos()


def freed_memory() -> None:
    tensor = torch.ones(1000)
    tensor.untyped_storage().resize_(0)
    tensor.view(10, 100)


def nested() -> None:
    torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2


def batched() -> None:
    torch.vmap(torch.dot)(torch.ones(3, 4), torch.ones(3, 4))


def quantized() -> None:
    torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()


def zero_tensor() -> None:
    torch._efficientzerotensor(3) + torch.ones(3)


ODD: dict[str, Callable[[], object]] = {
    "fake": fake_tensor,
    "wrapped": wrapped_tensor,
    "freed": freed_memory,
    "nested": nested,
    "batched": batched,
    "quantized": quantized,
    "zero tensor": zero_tensor,
    "sparse": lambda: torch.eye(3).to_sparse() @ torch.ones(3, 1),
    "sparse rows": lambda: torch.eye(3).to_sparse_csr() @ torch.ones(3, 1),
    "meta": lambda: torch.ones(3, device="meta") * 2,
    "no elements": lambda: torch.ones(0, 3).sum(0),
    "complex": lambda: (torch.ones(3, dtype=torch.complex64) * 2j).conj() + 1,
    "negative view": lambda: torch.ones(3, dtype=torch.complex64).conj().imag + 1,
    "bool": lambda: ~torch.ones(3, dtype=torch.bool),
    "half": lambda: torch.ones(3, dtype=torch.half) * 2,
    "bfloat16": lambda: torch.ones(3, dtype=torch.bfloat16) * 2,
    "not a number": lambda: torch.tensor([float("nan"), float("inf")]) * 2,
    "inference": lambda: torch.inference_mode()(lambda: torch.ones(3) * 2)(),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_tensors(tmp_path: Path, kind: str) -> None:
    """The program goes on, and the file can be read."""
    recorded(tmp_path / "operators", ODD[kind])
    read_trace(tmp_path / "operators")


@pytest.mark.parametrize("kind", ["sparse", "sparse rows", "quantized"])
def test_what_has_no_memory_of_its_own_is_read(tmp_path: Path, kind: str) -> None:
    values = [
        value
        for call in recorded(tmp_path / "operators", ODD[kind])
        for value in (*call.inputs, *call.outputs)
    ]
    assert all(value.checksum for value in values)


def test_what_wraps_other_tensors_is_looked_into(tmp_path: Path) -> None:
    calls = recorded(tmp_path / "operators", wrapped_tensor)
    read = [call.inputs for call in calls if call.operator == "aten::cos"]
    assert len(read) == 2 and read[0] != read[1]


def test_what_can_not_be_read_is_no_difference(tmp_path: Path) -> None:
    (made,) = recorded(tmp_path / "operators", lambda: torch.empty(3))
    (freed,) = [
        call for call in recorded(tmp_path / "operators", freed_memory) if call.operator == "aten::view"
    ]
    assert (made.outputs[0].checksum, freed.inputs[0].checksum) == ("", "")


def test_compiled_code_is_noted(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x.sin().cos(), backend="eager")
    compiled(torch.ones(3))
    recorded(tmp_path / "operators", lambda: compiled(torch.ones(3)))
    assert read_trace(tmp_path / "operators").notes == ("compiled",)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def test_dynamo_is_not_imported_for_it(tmp_path: Path) -> None:
    program = (
        "import sys, torch; from torchferry.proof.recording import operator_recorder; from pathlib import Path;"
        f"recorder = operator_recorder(Path({str(tmp_path / 'operators')!r})); recorder.start(); torch.ones(2);"
        "recorder.stop(); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_mode_that_the_program_enters_stays(tmp_path: Path) -> None:
    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += 1
            return func(*args, **(kwargs or {}))

    mode = Counting()
    calls = recorded(tmp_path / "operators", lambda: (mode.__enter__(), torch.ones(2)))
    try:
        torch.ones(3)
    finally:
        mode.__exit__(None, None, None)
    assert (mode.count, len(calls)) == (2, 1)
    torch.ones(4)
    assert mode.count == 2


def test_a_forked_process_does_not_write(tmp_path: Path) -> None:
    def program() -> None:
        child = os.fork()
        if child == 0:
            torch.ones(3)
            os._exit(0)
        os.waitpid(child, 0)

    assert recorded(tmp_path / "operators", program) == ()


def test_stopping_in_another_thread(tmp_path: Path) -> None:
    """The mode stays on the stack of the thread that started it, and writes no more."""
    recorder = operator_recorder(tmp_path / "operators")

    def program() -> None:
        recorder.start()
        torch.ones(2)
        stopping = threading.Thread(target=recorder.stop)
        stopping.start()
        stopping.join()
        torch.ones(2)

    training = threading.Thread(target=program)  # its own: the mode would stay on this one's stack
    training.start()
    training.join()
    trace = read_trace(tmp_path / "operators")
    assert (len(trace.calls), trace.whole) == (1, True)


def test_a_process_that_was_ended(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        recorder = operator_recorder(tmp_path / "operators")
        recorder.start()
        torch.ones(2)
        torch.zeros(2)
        os._exit(1)
    os.waitpid(child, 0)
    trace = read_trace(tmp_path / "operators")
    assert ([call.name for call in trace.calls], trace.whole) == (["ones", "zeros"], False)


def test_starting_and_stopping_twice(tmp_path: Path) -> None:
    recorder = operator_recorder(tmp_path / "operators")
    recorder.start()
    recorder.start()
    torch.ones(1)
    recorder.stop()
    recorder.stop()
    torch.ones(1)
    assert len(read_trace(tmp_path / "operators").calls) == 1


def test_it_is_a_record_as_any_other(tmp_path: Path) -> None:
    """What `ferry compare` reads."""
    for name, factor in (("mine", 1.0), ("golden", 1.5)):
        recorded(tmp_path / name, lambda factor=factor: (torch.ones(4) * factor).sin())
    (comparison,) = compare_files(tmp_path / "mine", tmp_path / "golden")
    assert [pair.mine and pair.mine.operator for pair in comparison.pairs][-1] == "aten::sin"

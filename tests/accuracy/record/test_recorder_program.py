"""The program does not notice: same bits, same exceptions, whatever tensors and modes it uses."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from tests.accuracy.record.recording import call_of, inputs_of, make_recorder, names, recorded
from tests.accuracy.record.test_recorder import make_net, step_of
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept


def train(steps: int = 3) -> tuple[list[float], torch.Tensor, torch.Tensor, list[int]]:
    """Losses, the last gradient, the generator's state, versions."""
    model = make_net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(1)
    losses = [step_of(model, optimizer, torch.randn(2, 3, 6, 6)) for _ in range(steps)]
    parameters = list(model.parameters())
    assert parameters[0].grad is not None
    return losses, parameters[0].grad, torch.get_rng_state(), [each._version for each in parameters]


@pytest.mark.parametrize("kept", list(Kept))
def test_it_computes_the_same(tmp_path: Path, kept: Kept) -> None:
    losses, gradient, state, versions = train()
    found: list[Any] = []
    recorded(tmp_path, lambda: found.extend(train()), kept)
    assert found[0] == losses and found[3] == versions
    assert torch.equal(found[1], gradient) and torch.equal(found[2], state)


def test_saved_tensors_and_graphs_are_the_programs(tmp_path: Path) -> None:
    packed: list[str] = []
    x = torch.randn(3, 4, requires_grad=True)

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(type(tensor).__name__)
        return tensor

    def program() -> None:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            x[:, ::2].mul(x[:, 1::2]).sum().backward()

    program()
    without = list(packed)
    packed.clear()
    recorded(tmp_path, program)
    assert packed == without


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_checkpoints(tmp_path: Path, is_reentrant: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def program() -> None:
        x = torch.ones(2, 3, requires_grad=True)
        checkpoint(model, x, use_reentrant=is_reentrant).sum().backward()

    record = recorded(tmp_path, program)
    again = [call for call in record.calls if call.operator == "aten::addmm"]
    assert [call.phase for call in again] == ["forward", "backward"]
    assert torch.equal(record.tensor(again[0].outputs[0]), record.tensor(again[1].outputs[0]))


def test_autocast(tmp_path: Path) -> None:
    layer = nn.Linear(3, 3)

    def program() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer(torch.ones(2, 3)).sum().backward()

    record = recorded(tmp_path, program)
    assert call_of(record, "addmm").outputs[0].dtype == "bfloat16"


def odd_tensors() -> dict[str, Callable[[], object]]:
    """Programs with tensors that are no plain memory."""
    return {
        "sparse_coo": lambda: torch.eye(3).to_sparse() + torch.eye(3).to_sparse(),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2,
        "meta": lambda: torch.ones(2, device="meta") + 1,
        "quint8": lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8).dequantize(),
    }


@pytest.mark.parametrize("kind", odd_tensors())
@pytest.mark.parametrize("kept", [Kept.STATISTICS, Kept.TENSORS])
def test_tensors_that_are_no_plain_memory(tmp_path: Path, kind: str, kept: Kept) -> None:
    record = recorded(tmp_path, odd_tensors()[kind], kept)
    unread = {
        tensor.unread
        for call in record.calls
        for tensor in (*call.inputs, *call.outputs)
        if not tensor.content
    }
    assert kind in unread and record.header.notes == ()


def test_fake_tensors(tmp_path: Path) -> None:
    def program() -> None:
        with FakeTensorMode():
            nn.Linear(3, 3)(torch.ones(2, 3)).sum().backward()

    record = recorded(tmp_path, program)
    assert record.header.notes == ()
    assert not any(tensor.offset for call in record.calls for tensor in call.outputs)


def test_vmap_and_grad(tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    expected = torch.vmap(torch.func.grad(lambda row: row.sin().sum()))(x)
    found = []
    record = recorded(
        tmp_path, lambda: found.append(torch.vmap(torch.func.grad(lambda row: row.sin().sum()))(x))
    )
    assert torch.equal(found[0], expected) and "cos" in names(record)


class Doubled(torch.Tensor):
    """A class with operators of its own: they call plain ones."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Doubled:
        made: Doubled = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)  # type: ignore[attr-defined]
        made.inner = inner  # type: ignore[attr-defined]
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = [each.inner if isinstance(each, Doubled) else each for each in args]
        return func(*plain, **(kwargs or {})) * 2


def test_classes_with_operators_of_their_own(tmp_path: Path) -> None:
    record = recorded(tmp_path, lambda: Doubled(torch.ones(2)) + 1)
    assert record.tensor(call_of(record, "mul.Tensor").outputs[0]).tolist() == [4, 4]


def test_modes_of_the_program_see_only_the_program(tmp_path: Path) -> None:
    seen: list[str] = []

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    x = torch.ones(4, 4, requires_grad=True)

    def program() -> None:
        x.grad = None
        with Listing(), Functions():
            (x[:, ::2] * 2).sum().backward()

    program()
    without = list(seen)
    seen.clear()
    recorder = make_recorder(tmp_path / "record.h5")
    with Listing():  # below the recorder's
        seen.clear()
        recorder.start()
        x.detach()[:, ::2] * 3
        recorder.stop()
        assert [name for name in seen if "clone" in name or "contiguous" in name] == []
    seen.clear()
    record = recorded(tmp_path, program)
    assert seen == without and "mul.Tensor" in names(record)


def test_an_exception_is_the_programs(tmp_path: Path) -> None:
    found: list[str] = []

    def program() -> None:
        try:
            torch.ones(2).add(torch.ones(3))
        except RuntimeError as error:
            found.append(str(error))
        torch.ones(2).neg()

    program()
    record = recorded(tmp_path, program)
    assert found[0] == found[1]
    assert names(record) == ["ones", "ones", "ones", "neg"]


def test_an_interrupt_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    x = torch.ones(2)
    x.neg()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(recorder._observer, "take", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        x.abs()
    x.exp()
    recorder.stop()
    record = open_record(tmp_path / "record.h5")
    assert names(record) == ["ones", "neg"]
    assert record.header.notes == ("ended early: KeyboardInterrupt",)


def test_a_mistake_of_ours_ends_the_recording_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    monkeypatch.setattr(recorder._observer, "before", lambda *_: 1 / 0)
    assert torch.ones(2).neg().tolist() == [-1, -1]
    recorder.stop()
    assert recorder.failed == "ZeroDivisionError: division by zero"
    assert open_record(tmp_path / "record.h5").header.notes == (f"ended early: {recorder.failed}",)


@pytest.mark.parametrize("kept", [Kept.TENSORS])
def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kept: Kept
) -> None:
    recorder = make_recorder(tmp_path / "record.h5", kept)
    recorder.start()
    torch.ones(2).neg()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", full)
        assert torch.ones(100_000).neg().sum().item() == -100_000
    torch.ones(2).abs()
    recorder.stop()
    assert "No space" in recorder.failed and "the program continues" in capsys.readouterr().err
    assert names(open_record(tmp_path / "record.h5"))[:2] == ["ones", "neg"]


def test_forked_processes_record_nothing(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path / "record.h5")
    recorder.start()
    torch.ones(2).neg()
    child = os.fork()
    if child == 0:
        try:
            torch.ones(2).abs()
            recorder.stop()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    torch.ones(2).exp()
    recorder.stop()
    assert names(open_record(tmp_path / "record.h5")) == ["ones", "neg", "ones", "exp"]


def test_threads_that_have_the_mode_on(tmp_path: Path) -> None:
    recorder = make_recorder(tmp_path / "record.h5", Kept.STATISTICS)
    recorder.start()

    def work(value: float) -> None:
        with recorder:
            for _ in range(50):
                torch.full((8,), value).neg()

    threads = [threading.Thread(target=work, args=(float(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.stop()
    calls = open_record(tmp_path / "record.h5").calls
    negated = [call for call in calls if call.operator == "aten::neg"]
    assert len(negated) == 200
    for call in negated:
        given, found = call.inputs[0].statistics, call.outputs[0].statistics
        assert given is not None and found is not None and given.mean == -found.mean


def test_compiled_code_is_noted_and_not_trusted(tmp_path: Path) -> None:
    x = torch.zeros(4)

    def update() -> None:
        x.numpy()[:] += 1  # as code does that was compiled

    compiled = torch.compile(lambda y: y.sin(), backend="eager")
    compiled(torch.ones(3))
    try:
        record = recorded(tmp_path, lambda: (x.neg(), update(), x.neg(), compiled(torch.ones(3))))
    finally:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
    assert [tensor[0].item() for tensor in inputs_of(record, "neg")] == [0, 1]
    assert record.header.notes == ("compiled",) and "sin" in names(record)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    from torch.nn.modules import module as modules

    before = (
        len(modules._global_forward_hooks),
        len(modules._global_forward_pre_hooks),
        torch.cuda.CUDAGraph.replay,
    )
    recorded(tmp_path, lambda: torch.ones(1))
    after = (
        len(modules._global_forward_hooks),
        len(modules._global_forward_pre_hooks),
        torch.cuda.CUDAGraph.replay,
    )
    assert after == before
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None

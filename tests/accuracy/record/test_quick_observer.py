"""The observer in C++ writes what the one in Python writes, call by call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.accuracy.record.recording import make_recorder, recorded
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Kept
from torchferry.accuracy.record import quick_observer

if quick_observer.build() is None:
    pytest.skip("no C++ compiler or no Python.h: there is one observer only", allow_module_level=True)


def _training() -> None:
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(16, 3)
    )
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(5, 2, 4, 4)), torch.tensor([0, 1, 2, 0, 1])).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def _views_and_writes() -> None:
    x = torch.arange(24.0).view(4, 6)
    x[1:3].add_(1)
    x.t()[2].zero_()
    torch.add(x, 1, out=torch.empty(4, 6))
    x.copy_(torch.ones(6), non_blocking=True)
    x.select(0, 1).fill_(float("nan"))
    (x + x.sum(0, keepdim=True)).expand(4, 6).exp()
    x.resize_(2, 6).mul_(2)


def _shared_memory() -> None:
    array = torch.zeros(4).numpy()
    x = torch.from_numpy(array)
    x.exp()
    array[2] = 5  # nobody sees this
    x.exp()
    x.exp()


def _lists_and_values() -> None:
    torch.cat([torch.ones(2), torch.zeros(3)], dim=0).split([2, 3])
    torch._foreach_add([torch.ones(2), torch.ones(3)], [1.0, float("nan")])
    torch.full((2,), -0.0).to(torch.bfloat16)
    torch.full((2,), 0.0)
    torch.index_put(torch.zeros(4), (torch.tensor([1, 2]),), torch.tensor(3.0))
    torch.ones(3).sum(dtype=torch.float64).item()
    torch.nn.functional.gelu(torch.ones(2), approximate="tanh")
    torch.max(torch.randn(3, 4), dim=1)


def _odd_tensors() -> None:
    z = torch.randn(3, dtype=torch.complex64)
    z.conj().abs()
    z.imag.neg().exp()
    torch.empty(0).add(1)
    torch.tensor(2.5).mul(3)
    torch.eye(3).to_sparse().mul(2)
    torch.randn(6)[::2].exp()
    torch.ones(2, device="meta").add(1)
    with torch.inference_mode():
        x = torch.ones(3)
        x.add_(1).exp()
    nn.Parameter(torch.ones(2)).add(1)


def _errors() -> None:
    x = torch.ones(3)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            x.add_(torch.ones(2))
        x.exp()


def _another_storage() -> None:
    x = torch.ones(4)
    x.exp()
    x.set_(torch.zeros(8).storage())
    x.exp()
    x.data = torch.full((8,), 3.0)
    x.exp()
    x.untyped_storage().resize_(64)
    x.exp()


def _default_device() -> None:
    with torch.device("cpu"):  # a mode that sees PyTorch's functions
        torch.ones(3).mul(2).sum()


def _random() -> None:
    torch.rand(4).bernoulli_(0.5)
    functional.dropout(torch.ones(100), 0.3)


PROGRAMS = (
    _training,
    _views_and_writes,
    _shared_memory,
    _lists_and_values,
    _odd_tensors,
    _errors,
    _another_storage,
    _default_device,
    _random,
)


def _calls(path: Path, program: Callable[[], None]) -> list[str]:
    """As text: not every number is equal to itself."""
    torch.manual_seed(0)
    path.mkdir()
    with recorded(path, program, Kept.STATISTICS) as record:
        return [str(call) for call in record.calls]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_both_observers_write_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Callable[[], None]
) -> None:
    quick = _calls(tmp_path / "quick", program)
    monkeypatch.setattr(quick_observer, "quick_observer", lambda *_: None)
    assert quick == _calls(tmp_path / "python", program)


def test_a_recording_of_statistics_takes_the_quick_one(tmp_path: Path) -> None:
    assert type(make_recorder(tmp_path / "a.h5", Kept.STATISTICS)._observer).__name__ == "QuickObserver"
    assert type(make_recorder(tmp_path / "b.h5")._observer).__name__ == "CallObserver"


def test_where_it_can_not_be_compiled_python_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("TORCHFERRY_CACHE", str(tmp_path / "cache"))
    assert quick_observer.build() is None
    recorder = make_recorder(tmp_path / "record.h5", Kept.STATISTICS)
    recorder.start()
    torch.ones(2).exp()
    recorder.stop()
    assert [call.operator for call in open_record(tmp_path / "record.h5").calls] == [
        "aten::ones",
        "aten::exp",
    ]


def test_a_backward_pass_in_another_thread(tmp_path: Path) -> None:
    def program() -> None:
        x = torch.ones(3, requires_grad=True)
        loss = (x * x).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
        x.detach().add_(1)

    assert len(_calls(tmp_path / "record", program)) > 3

"""Tensors of two records, measured: by index whatever their order in memory, each pair of contents once, little memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.accuracy.file.making import HEADER, put
from tests.accuracy.native.comparing import compare_arrays
from torchferry.accuracy.compare import comparing
from torchferry.accuracy.compare.comparing import Figures
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, TensorRecord

Records = Callable[[torch.Tensor, torch.Tensor], tuple[Figures, TensorRecord, TensorRecord]]


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Records]:
    """Writes one tensor into each of two records."""
    opened: list[Record] = []

    def record(mine: torch.Tensor, golden: torch.Tensor) -> tuple[Figures, TensorRecord, TensorRecord]:
        for name, tensor in (("mine.h5", mine), ("golden.h5", golden)):
            write(tmp_path / name, tensor)
            opened.append(open_record(tmp_path / name))
        ours, theirs = opened[-2:]
        return Figures(ours, theirs), ours.calls[0].outputs[0], theirs.calls[0].outputs[0]

    yield record
    for each in opened:
        each.close()


def write(path: Path, tensor: torch.Tensor) -> None:
    writer = RecordWriter(path, HEADER)
    writer.write(Call(1, "aten::relu", 1, "forward", outputs=(put(writer, tensor, "output/output_0", 1),)))
    writer.close()


def example(*shape: int) -> torch.Tensor:
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) + 1


ORDERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x.contiguous(),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "permuted": lambda x: x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0),
    "every second": lambda x: torch.stack([x, x], dim=-1)[..., 0],
}


@pytest.mark.parametrize("mine_order", ORDERS)
@pytest.mark.parametrize("golden_order", ORDERS)
def test_orders_in_memory(
    recorded: Records, monkeypatch: pytest.MonkeyPatch, mine_order: str, golden_order: str
) -> None:
    monkeypatch.setattr(comparing, "_REORDERED", 50)  # several blocks
    golden = example(2, 3, 4, 5)
    mine = golden.clone()
    mine[1, 2, 3, 4] += 7
    found = recorded(ORDERS[mine_order](mine), ORDERS[golden_order](golden))
    metrics = found[0].difference(*found[1:]).metrics
    assert metrics is not None
    assert (metrics.count, metrics.equal, metrics.max_abs) == (120, 119, 7.0)
    wanted = compare_arrays(mine.numpy().reshape(-1), golden.numpy().reshape(-1), "float32", "float32")
    assert replace(metrics, worst=0, relative_euclidean=0, cosine=0) == replace(
        wanted, worst=0, relative_euclidean=0, cosine=0
    )
    assert metrics.relative_euclidean == pytest.approx(wanted.relative_euclidean)
    assert metrics.worst == 119


def test_positions_are_those_of_golden(recorded: Records) -> None:
    golden = example(2, 3, 4, 4)
    mine = golden.clone()
    mine[0, 1, 0, 0] = 0
    found = recorded(mine, ORDERS["channels last"](golden))
    difference = found[0].difference(*found[1:])
    assert difference.metrics is not None and difference.metrics.worst == 1
    assert difference.picture == "4" + "." * 31  # one of the first three


def test_repeated_elements_are_counted_once_where_both_repeat_them(recorded: Records) -> None:
    row = example(1, 6)
    found = recorded((row + 1).expand(50, 6), row.expand(50, 6))
    assert found[0].difference(*found[1:]).metrics.count == 6  # type: ignore[union-attr]


def test_repeated_elements_against_elements(recorded: Records) -> None:
    row = example(1, 6)
    full = row.repeat(50, 1)
    full[49, 5] = -1
    for mine, golden in ((row.expand(50, 6), full), (full, row.expand(50, 6))):
        found = recorded(mine, golden)
        metrics = found[0].difference(*found[1:]).metrics
        assert metrics is not None and (metrics.count, metrics.equal, metrics.worst >= 0) == (300, 299, True)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.bool, torch.complex32]
)
def test_sorts_of_elements(recorded: Records, dtype: torch.dtype) -> None:
    golden = torch.tensor([1.0, 0.0, 1.0, 1.0]).to(dtype)
    mine = torch.tensor([1.0, 0.0, 0.0, 1.0]).to(dtype)
    found = recorded(mine, golden)
    difference = found[0].difference(*found[1:])
    assert difference.metrics is not None and difference.metrics.worst == 2
    assert difference.metrics.max_abs == 1.0


def test_two_dtypes(recorded: Records) -> None:
    golden = torch.tensor([1.0, 2.0, 3.0])
    found = recorded(golden.bfloat16(), golden)
    assert found[0].difference(*found[1:]).metrics.is_equal  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("mine", "golden", "reason"),
    [(example(2, 3), example(3, 2), "shape"), (example(2).to(torch.complex64), example(2), "dtype")],
)
def test_what_can_not_be_compared(
    recorded: Records, mine: torch.Tensor, golden: torch.Tensor, reason: str
) -> None:
    found = recorded(mine, golden)
    difference = found[0].difference(*found[1:])
    assert (difference.metrics, difference.reason) == (None, reason)


def test_what_was_not_kept(recorded: Records) -> None:
    figures, mine, golden = recorded(example(2), example(2))
    assert figures.difference(replace(mine, offset=None), golden).reason == "statistics"
    assert figures.difference(mine, replace(golden, unread="uninitialised")).reason == "uninitialised"


def test_nothing_in_it(recorded: Records) -> None:
    figures, mine, golden = recorded(torch.empty(0, 3), torch.empty(0, 3))
    difference = figures.difference(mine, golden)
    assert difference.metrics is not None and difference.metrics.is_equal and difference.picture == ""


def test_a_number_without_dimensions(recorded: Records) -> None:
    figures, mine, golden = recorded(torch.tensor(2.0), torch.tensor(4.0))
    metrics = figures.difference(mine, golden).metrics
    assert metrics is not None and metrics.max_rel == 0.5


def test_contents_are_measured_once(recorded: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    figures, mine, golden = recorded(example(8), example(8))
    first = figures.difference(mine, golden)
    monkeypatch.setattr(Figures, "_measure", None)
    again = figures.difference(replace(mine, name="input/self"), golden)
    assert again.mine.name == "input/self" and again.metrics is first.metrics


def test_what_is_remembered_does_not_grow(recorded: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "_REMEMBERED", 10)
    figures, mine, golden = recorded(example(200), example(200))
    for at in range(0, 400, 4):
        figures.difference(
            *(replace(each, shape=(4,), offset=(each.offset or 0) + at) for each in (mine, golden))
        )
    assert len(figures._found) + len(figures._earlier) <= 20


def test_files_are_given_back_and_threads_agree(recorded: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that others are reading vanish and come back."""
    monkeypatch.setattr(comparing, "_HELD_BYTES", 1)
    golden = torch.randn(300_000, generator=torch.Generator().manual_seed(1))
    figures, mine, theirs = recorded(golden * 1.01, golden)
    wanted = figures.difference(mine, theirs)
    monkeypatch.setattr(figures, "_found", {})

    def measure(_: int) -> object:
        figures._found.clear()
        return figures.difference(mine, theirs)

    with ThreadPoolExecutor(4) as executor:
        assert all(each == wanted for each in executor.map(measure, range(40)))
    assert wanted.metrics is not None and wanted.metrics.max_rel == pytest.approx(0.01, rel=1e-4)

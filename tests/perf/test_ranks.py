"""Processes of one run beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from torchferry.perf.ranks import compare_ranks
from torchferry.perf.run import Run
from torchferry.text import Text

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def process(folder: Path, rank: int, computing: float, loading: float = 0, communicates: bool = True) -> Run:
    """Steps of 1,000 µs: data, computation, and waiting for the others in a reduction."""
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", loading, 10)
    if loading:
        built.annotation(LOADER, 0, loading)
    built.kernel("gemm", loading, computing, launched=loading + 1)
    begin = loading + computing
    if communicates:
        built.kernel("ncclDevKernel_AllReduce", begin, 1000 - begin, launched=loading + 2, stream=9)
    return built.run(folder, rank_facts={"rank": rank})


def test_processes_alike(tmp_path: Path) -> None:
    assert not list(compare_ranks([process(tmp_path, rank, 900 + rank) for rank in range(4)]))


def test_one_process_has_no_others(tmp_path: Path) -> None:
    assert not list(compare_ranks([process(tmp_path, 0, 500)]))


def test_processes_that_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """Workers that a program starts by multiprocessing take themselves for rank 0, each."""
    runs = [process(tmp_path, 0, 900 if number == 2 else 500) for number in range(4)]
    assert not list(compare_ranks(runs))
    alone = [process(tmp_path, rank, 1000 if rank else 500, communicates=False) for rank in range(2)]
    assert not list(compare_ranks(alone))


def test_one_computes_longer(tmp_path: Path) -> None:
    runs = [process(tmp_path, rank, 900 if rank == 2 else 500) for rank in range(4)]
    (diagnosis,) = compare_ranks(runs)
    assert "Rank 2 works 0.9 ms per step, the average is 0.6 ms" in diagnosis.summary.en
    assert diagnosis.share == pytest.approx(0.3)
    assert diagnosis.evidence[0].what == Text("rank 2", "rank 2")
    assert "computes longer" in diagnosis.remedies[0].en


def test_one_waits_for_data(tmp_path: Path) -> None:
    runs = [process(tmp_path, rank, 500, loading=400 if rank == 1 else 0) for rank in range(2)]
    (diagnosis,) = compare_ranks(runs)
    assert "waits longer for data" in diagnosis.remedies[0].en

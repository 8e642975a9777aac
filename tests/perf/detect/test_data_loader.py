"""The program waits for data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL, SLOW_LOADER, real_run
from torchferry.perf.detect.data_loader import DETECTOR
from torchferry.perf.model import Impact
from torchferry.perf.run import Run

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
SEVERAL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def steps(waiting: float, mark: str, covered: bool = False) -> TraceBuilder:
    """Two steps of 1,000 µs that begin with waiting for data."""
    built = TraceBuilder()
    for number, start in enumerate((0, 1000)):
        built.step(number, start, 1000)
        built.annotation(mark, start, waiting)
        built.op("aten::mm", start + waiting, 10)
        begin = start if covered else start + waiting
        built.kernel("gemm", begin, start + 1000 - begin, launched=start + waiting + 2)
    return built


def test_a_loader_that_keeps_up_is_fine(tmp_path: Path) -> None:
    assert not found(DETECTOR, steps(10, SEVERAL).run(tmp_path))


def test_waiting_while_the_device_computes_costs_nothing(tmp_path: Path) -> None:
    assert not found(DETECTOR, steps(400, SEVERAL, covered=True).run(tmp_path))


def test_a_slow_loader(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, steps(400, SINGLE).run(tmp_path))
    assert diagnosis.share == pytest.approx(0.4)
    assert diagnosis.gain == pytest.approx(0.4)
    assert diagnosis.severity is Impact.HIGH
    assert "num_workers=4" in diagnosis.remedies[0].en
    assert diagnosis.evidence[0].count == 2


def test_one_with_workers_needs_more_of_them(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, steps(400, SEVERAL).run(tmp_path))
    assert "Raise num_workers" in diagnosis.remedies[0].en


def taking(folder: Path, frame: str, unprofiled: float = 1.0, events_at: int = 30) -> Run:
    """Two steps that take 400 of 1,000 µs to get a batch, in `frame`; 100 more frames in each."""
    built = steps(400, SEVERAL)
    for start in (0, 1000):
        built.python("train.py(3): main", start, 1000)
        built.python(frame, start + 5, 390)
        for at in range(100):
            built.python("multiprocessing/connection.py(9): f", start + events_at + at * 3, 1)
    return built.run(folder, rank_facts={"unprofiled_step": 0.001 * unprofiled})


POLL = "<built-in method poll of select.poll object at 0x7f>"
LOADS = "<built-in function loads>"


def test_workers_that_are_done_do_not_need_to_be_more(tmp_path: Path) -> None:
    assert "Raise num_workers" in the(DETECTOR, taking(tmp_path, POLL)).remedies[0].en
    diagnosis = the(DETECTOR, taking(tmp_path, LOADS))
    assert "workers keep up: the program waits for them for 0.0%" in diagnosis.summary.en
    assert "num_workers=4" not in diagnosis.remedies[0].en and "pin_memory" in diagnosis.remedies[0].en
    assert diagnosis.gain is None and diagnosis.share == pytest.approx(0.4)


def test_what_the_profiler_adds_to_taking_batches_over_does_not_count(tmp_path: Path) -> None:
    """A step takes 0.62 of what it takes with the profiler, which writes down most of its events there."""
    assert not found(DETECTOR, taking(tmp_path, LOADS, unprofiled=0.62))
    elsewhere = the(DETECTOR, taking(tmp_path, LOADS, unprofiled=0.62, events_at=500))
    assert elsewhere.share == pytest.approx(0.4 / 0.62, abs=0.03)
    for absurd in (1e-300, 1e-12, 5.0):
        assert all(
            0 <= each.share <= 1 for each in found(DETECTOR, taking(tmp_path, LOADS, unprofiled=absurd))
        )


def test_a_real_run_without_workers() -> None:
    diagnosis = the(DETECTOR, real_run(SLOW_LOADER))
    assert f"{diagnosis.share:.1%}" == "39.6%"
    assert "39.6%" in diagnosis.summary.en and "39.6%" in diagnosis.summary.zh


@pytest.mark.parametrize("name", [FAST_LOADER, LANGUAGE_MODEL])
def test_real_runs_that_do_not_wait(name: str) -> None:
    assert not found(DETECTOR, real_run(name))

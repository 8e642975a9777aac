"""Steps that do more than the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from torchferry.perf.detect.uneven_steps import DETECTOR


def training(times: list[float]) -> TraceBuilder:
    """Operators for 100 µs, the rest of a step is validation."""
    built = TraceBuilder()
    start = 0.0
    for number, time in enumerate(times):
        built.step(number, start, time)
        built.python("train.py(3): step", start, time)
        built.op("aten::mm", start, 100)
        if time > 150:
            built.python("train.py(30): validate", start + 110, time - 110)
        start += time
    return built


@pytest.mark.parametrize(
    "times",
    [
        [120.0, 125, 118, 130, 122],
        [900.0, 120, 121, 119],  # the first warms up
        [120.0, 900, 121, 119, 118],  # once is no habit
        [120.0, 900, 121],
    ],
)
def test_even_steps(times: list[float], tmp_path: Path) -> None:
    assert not found(DETECTOR, training(times).run(tmp_path))


@pytest.mark.parametrize("times", [[120.0, 900, 121, 910, 119, 905], [900.0, 120, 910, 119, 905]])
def test_validation_in_every_second_step(times: list[float], tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(times).run(tmp_path))
    assert diagnosis.share > 0.5
    assert diagnosis.evidence[0].what == "train.py(30): validate"  # not the step that calls it

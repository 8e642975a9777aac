"""The example's bottlenecks are where they are planted, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.forking import ROOT

from .profiling import SIMULATED, Run, profiled

EXAMPLE = ROOT / "examples/performance/train.py"
# What shows in the profile of two steps: names of events -> the least number of them.
SHOWN: Mapping[str, tuple[str, int]] = {
    "item": ("aten::item", 600),
    "noncontiguous": ("aten::contiguous", 80),
    "fallback": ("torchferry::fallback aten::_logcumsumexp", 30),
    "unfused": ("aten::lerp_", 100),
}


@cache
def planted(plant: str, folder: Path) -> Run:
    call = f"runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    code = f"import runpy, sys\nsys.argv[1:] = ['--plant', {plant!r}]\n{call}\n"
    return profiled(code, folder, SIMULATED, steps=(3, 4))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.mark.parametrize("plant", ["item", "noncontiguous", "fallback", "unfused"])
def test_it_shows_where_it_is_planted(plant: str, folder: Path) -> None:
    name, least = SHOWN[plant]
    assert len(planted(plant, folder).named(name)) >= least
    assert len(planted("none", folder).named(name)) < 3


def test_shapes_change_in_each_step(folder: Path) -> None:
    def shapes(plant: str) -> set[str]:
        first = [event["args"]["Input Dims"][0] for event in planted(plant, folder).named("aten::conv2d")]
        return {str(shape) for shape in first if shape[1] == 3}

    assert len(shapes("dynamic")) == 2 and len(shapes("none")) == 1


def test_the_loader_unpacks_each_picture_alone(folder: Path) -> None:
    def pictures(plant: str) -> int:
        names = [event["name"] for event in planted(plant, folder).events]
        return sum("train.py" in name and name.endswith(": __getitem__") for name in names)

    assert pictures("slow_loader") == 2 * 32 and pictures("none") == 2

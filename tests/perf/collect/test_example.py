"""The example's bottlenecks are where they are planted, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.forking import ROOT
from torchferry.perf import run as collected
from torchferry.perf.analysis import analyze
from torchferry.perf.model import Diagnosis, Impact
from torchferry.traces.reader import read_trace

from .profiling import SIMULATED, Run, profiled

EXAMPLE = ROOT / "examples/performance/train.py"
# What shows in the profile of three steps: names of events -> the least number of them.
SHOWN: Mapping[str, tuple[str, int]] = {
    "item": ("aten::item", 600),
    "noncontiguous": ("aten::contiguous", 80),
    "fallback": ("torchferry::fallback aten::_logcumsumexp", 30),
    "unfused": ("aten::lerp_", 100),
}
# What an analysis calls it.
NAMED: Mapping[str, str] = {
    "slow_loader": "data_loader",
    "item": "synchronization",
    "noncontiguous": "non_contiguous",
    "fallback": "fallback",
    "unfused": "unfused_optimizer",
    "dynamic": "dynamic_shapes",
}


@cache
def planted(plant: str, folder: Path) -> Run:
    call = f"runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    code = f"import runpy, sys\nsys.argv[1:] = ['--plant', {plant!r}]\n{call}\n"
    return profiled(code, folder, SIMULATED, steps=(3, 5))


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

    assert len(shapes("dynamic")) == 3 and len(shapes("none")) == 1


def test_the_loader_unpacks_each_picture_alone(folder: Path) -> None:
    def pictures(plant: str) -> int:
        names = [event["name"] for event in planted(plant, folder).events]
        return sum("train.py" in name and name.endswith(": __getitem__") for name in names)

    assert pictures("slow_loader") == 3 * 32 and pictures("none") == 3


@cache
def diagnosed(plant: str, folder: Path) -> dict[str, Diagnosis]:
    run = planted(plant, folder)
    trace = read_trace(run.folder / run.only.trace)
    facts = {"device": run.only.device, "simulated": True}
    analysis = analyze(collected.Run((run.only.trace,), trace, profile=facts, vendor=SIMULATED.vendor))
    return {diagnosis.id: diagnosis for diagnosis in analysis.diagnoses}


@pytest.mark.parametrize("plant", NAMED)
def test_an_analysis_names_what_is_planted(plant: str, folder: Path) -> None:
    found = diagnosed(plant, folder)
    wanted = NAMED[plant]

    assert found[wanted].severity is Impact.HIGH, found
    assert found[wanted].remedies and found[wanted].evidence
    others = [name for name in NAMED.values() if name not in (wanted, "data_loader") and name in found]
    assert not others


def test_a_program_without_them_is_healthy(folder: Path) -> None:
    found = diagnosed("none", folder)

    assert not [name for name in NAMED.values() if name != "data_loader" and name in found]
    assert "data_loader" not in found or found["data_loader"].severity is not Impact.HIGH

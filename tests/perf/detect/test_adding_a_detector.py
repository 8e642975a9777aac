"""The architecture page says how a detector is added: its example, put among the detectors as it stands, is one."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from torchferry.perf.detect import registry

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["en", "zh"])
def example(request: pytest.FixtureRequest) -> ModuleType:
    page = (ROOT / f"docs/{request.param}/how-it-works/architecture.md").read_text("utf-8")
    (code,) = re.findall(r"^```python detector\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module = ModuleType("pinning")
    exec(compile(code, "pinning.py", "exec"), vars(module))
    return module


def training(pinning: float) -> TraceBuilder:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 500)
    built.op("aten::pin_memory", 500, pinning)
    return built


def test_what_it_must_not_find(example: ModuleType, tmp_path: Path) -> None:
    assert not found(example.DETECTOR, training(pinning=5).run(tmp_path))


def test_what_it_finds(example: ModuleType, tmp_path: Path) -> None:
    diagnosis = the(example.DETECTOR, training(pinning=100).run(tmp_path))
    assert diagnosis.summary.en == "pin_memory() takes 10.0% of the time."
    assert [each.what for each in diagnosis.evidence] == ["aten::pin_memory"]


def test_every_module_with_a_detector_is_in_the_list() -> None:
    folder = Path(registry.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "\nDETECTOR = " in path.read_text("utf-8")}
    assert modules == set(registry._MODULES)

"""Every model of the guide's table trains on the simulated device exactly as on the CPU."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from torchferry.vendors.registry import get_vendor

from .names import GUIDE_NAMES, SAMPLE
from .process import ModelProcess

VENDOR = "ascend"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelProcess]:
    log = tmp_path_factory.mktemp("models") / "stderr.txt"
    # One thread: threads that wait for each other crawl when the machine has other work.
    options = ("--vendor", VENDOR, "--threads", "1", "--stdin")
    process = ModelProcess(log, "tests.sim.models.runner", *options)
    yield process
    process.close()


def test_the_table_has_55_models() -> None:
    assert len(set(GUIDE_NAMES)) == 55
    assert set(SAMPLE) <= set(GUIDE_NAMES)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, id=name, marks=() if name in SAMPLE else pytest.mark.long) for name in GUIDE_NAMES],
)
def test_two_steps_are_bitwise_equal(name: str, models: ModelProcess) -> None:
    answer = models.ask(name)
    assert "error" not in answer, answer["error"]
    assert answer["devices"] == [get_vendor(VENDOR).device_type]
    assert answer["without_gradient"] == []
    assert not answer["unchanged"]
    assert all(map(math.isfinite, answer["losses"]))
    assert answer["device_losses"] == answer["losses"]
    assert answer["different_losses"] == []
    assert answer["different_state"] == []

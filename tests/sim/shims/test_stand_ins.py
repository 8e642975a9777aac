"""apex and torch_npu on the CPU and on the simulated device: one process each runs all checks."""

from __future__ import annotations

import pytest

from tests.sim.checking import check_names, results, verdict

PACKAGE = "tests.sim.shims"


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("place", ["cpu", "device"])
def test_stand_in(place: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, "ascend", tmp_path_factory, place), check)

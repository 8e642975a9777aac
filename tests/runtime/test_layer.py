"""CUDA's names over the simulated device of every vendor with a plugin."""

from __future__ import annotations

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.runtime"


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", VENDORS)
def test_layer(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)

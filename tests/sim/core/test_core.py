"""The simulated device of every vendor with a plug-in."""

from __future__ import annotations

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.sim.core"


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", VENDORS)
def test_device(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)

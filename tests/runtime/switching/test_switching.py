"""Turning the layer on and off, and its settings, over a simulated device."""

from __future__ import annotations

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.runtime.switching"


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", [VENDORS[0], VENDORS[-1]])
def test_switching(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)

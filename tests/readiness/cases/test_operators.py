"""Cases of operators of every sort hold on every vendor's simulated device."""

from __future__ import annotations

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.readiness.cases.operators"


# the first with the other tests, the others only with those that take long
SOME_VENDORS = [VENDORS[0], *(pytest.param(vendor, marks=pytest.mark.long) for vendor in VENDORS[1:])]


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", SOME_VENDORS)
def test_check(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)

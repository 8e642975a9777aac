"""Wrong kernels in a simulated device: cases fail, and shrink to the smallest that fail alike."""

from __future__ import annotations

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.readiness.cases.faults"


@pytest.mark.parametrize("check", check_names(PACKAGE))
def test_check(check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, VENDORS[0], tmp_path_factory), check)

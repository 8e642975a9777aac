"""PyTorch's own samples through the vendor's plugin: what the emulated CANN computes is what the CPU computes."""

from __future__ import annotations

import pytest
from tools.conformance.__main__ import main

from tests.sim.test_conformance import A_FEW

# Counted in operators, of those whose samples run on the CPU; docs/en/emulated.md says what is wrong with the others.
BARS = "float32=98"


@pytest.mark.usefixtures("emulation")
def test_a_few_operators_are_those_of_the_cpu() -> None:
    options = ["--ops", A_FEW, "--dtypes", "float32", "--samples", "4", "--jobs", "1"]
    assert main(["--vendor", "ascend", "--emulate", *options, "--fail-under", "95"]) == 0


@pytest.mark.long
@pytest.mark.usefixtures("emulation")
def test_all_operators_are_those_of_the_cpu() -> None:
    options = ["--dtypes", "float32", "--samples", "10", "--jobs", "1"]
    assert main(["--vendor", "ascend", "--emulate", *options, "--fail-under", BARS]) == 0

"""The affinity forms beside the plain ones: on the CPU, on a GPU if there is one, on simulated devices."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.perf.affinity"
HERE = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
OFTEN = ("ascend", "cambricon")  # their optimizers are of the two kinds that there are


def _vendors() -> list[Any]:
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.long) for name in VENDORS]


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("device", HERE)
def test_on_a_device_of_torchs_own(device: str, check: str) -> None:
    module, _, name = check.partition("::")
    run = getattr(importlib.import_module(f"{PACKAGE}.checks.{module}"), name)
    run(SimpleNamespace(type=device, vendor=None))


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", _vendors())
def test_on_a_simulated_device(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)

"""The simulated device of every vendor with a plug-in."""

from __future__ import annotations

import os

import pytest

from tests.forking import run_forked
from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.sim.core"


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", VENDORS)
def test_device(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)


def printed(code: str) -> str:
    run = run_forked(code, os.environ)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("ascend", "npu:0"),
        ("cambricon", "this process simulates ascend; start another one to simulate cambricon"),
    ],
)
def test_activating_twice(second: str, expected: str) -> None:
    code = (
        "import torchferry.sim as s, torch\n"
        "s.activate('ascend', devices=1)\n"
        f"try:\n    s.activate({second!r})\n    print(torch.ones(1, device='npu').device)\n"
        "except Exception as error:\n    print(error)\n"
    )
    assert printed(code).strip() == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("s.activate('intel')", "PyTorch itself has the device `xpu`"),
        ("s.activate('ascend', devices=0)", "there can be 1 to 64 simulated devices"),
        ("s.activate('ascend', memory='lots')", "'lots' is no size of memory"),
        ("s.activate('ascent')", "did you mean 'ascend'?"),
    ],
)
def test_what_cant_be_simulated_is_said_in_one_line(call: str, expected: str) -> None:
    code = f"import torchferry.sim as s\ntry:\n    {call}\nexcept Exception as error:\n    print(error)\n"
    assert expected in printed(code)

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
        ("cambricon", "this process already simulates ascend; start another one to simulate cambricon"),
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
        (
            "s.activate('ascend', devices=0)",
            "the number of simulated devices must be 1 to 64, not 0",
        ),
        ("s.activate('ascend', memory='lots')", "'lots' is not a memory size"),
        ("s.activate('ascent')", "did you mean 'ascend'?"),
    ],
)
def test_what_cant_be_simulated_is_said_in_one_line(call: str, expected: str) -> None:
    code = f"import torchferry.sim as s\ntry:\n    {call}\nexcept Exception as error:\n    print(error)\n"
    assert expected in printed(code)


SATURATED = """
import torchferry.sim as s
s.activate('ascend', devices=1)
import torch
x = torch.full((2,), 60000.0, dtype=torch.half, device='npu')
y = torch.tensor([-1.0, 70000.0], device='npu')
print((x * 2).tolist(), y.half().tolist(), y.half().sqrt().tolist(), (y * 2).tolist())
scaler = torch.amp.GradScaler('npu', init_scale=2.0)
weight = torch.ones(2, device='npu', requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1.0)
for factor in (60000.0, 1.0):
    optimizer.zero_grad()
    scaler.scale((weight.half() * factor * 2).float().sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    print(weight.tolist(), scaler.get_scale())
"""


def test_a_card_that_was_told_to_saturate_has_no_infinities() -> None:
    run = run_forked(SATURATED, {**os.environ, "INF_NAN_MODE_FORCE_DISABLE": "1"})
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "[65504.0, 65504.0] [-1.0, 65504.0] [0.0, 255.875] [-2.0, 140000.0]",
        "[1.0, 1.0] 1.0",  # the scaler has noticed the overflow
        "[-1.0, -1.0] 1.0",
    ]


def test_a_setting_that_the_vendors_adapter_refuses_is_refused() -> None:
    run = run_forked(
        "import torchferry.sim as s\ntry:\n    s.activate('ascend')\nexcept Exception as error:\n    print(error)\n",
        {**os.environ, "INF_NAN_MODE_ENABLE": "0"},
    )
    assert "INF_NAN_MODE_FORCE_DISABLE=1" in run.stdout

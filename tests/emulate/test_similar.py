"""Every entry of Ascend's table of equivalents, executed with the vendor's own plugin.

What the converter writes computes what the original does on the CPU; what the table says runs on the CPU does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.similar.cases import CASES, HALF, Case
from tests.emulate.running import answer
from torchferry.vendors.registry import get_vendor
from torchferry.vendors.similar import Similar, load_similar

ROOT = Path(__file__).parents[2]
ENTRIES = load_similar(get_vendor("ascend").folder)
ON_THE_CPU = "falls back to the CPU"
# Calls of what the table says has no kernel: x and y are matrices of 4 x 4 on the device.
WITHOUT_KERNEL = {
    "torch.nn.functional.huber_loss": "torch.nn.functional.huber_loss(x, y)",
    "torch.nn.HuberLoss": "torch.nn.HuberLoss()(x, y)",
    **{f"torch.{name}": f"torch.{name}(x, y)" for name in ("fmax", "fmin", "heaviside", "hypot", "copysign")},
    **{
        f"torch.{name}": f"torch.{name}(x)" for name in ("mode", "poisson", "lgamma", "digamma", "matrix_exp")
    },
    "torch.logcumsumexp": "torch.logcumsumexp(x, 0)",
    "torch.linalg.matrix_exp": "torch.linalg.matrix_exp(x)",
    "torch.linalg.eigh": "torch.linalg.eigh(x)",
    "torch.linalg.solve": "torch.linalg.solve(x, y)",
    "torch.linalg.lstsq": "torch.linalg.lstsq(x, y)",
    "torch.nn.functional.multi_margin_loss": "torch.nn.functional.multi_margin_loss(x, torch.arange(4).npu())",
    "torch.nn.functional.fractional_max_pool2d": "torch.nn.functional.fractional_max_pool2d(x[None], 2, 2)",
}
PROGRAM = """\
import json, os, sys, tempfile, traceback, torch, torch_npu
from tests.conversion.similar.running import check_case
from tests.emulate.test_similar import WITHOUT_KERNEL, cases

def told(call):
    with tempfile.TemporaryFile("w+") as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            eval(call)
            torch.npu.synchronize()
        finally:
            os.dup2(before, 2)
            os.close(before)
        file.seek(0)
        return file.read()

x, y = (torch.rand(4, 4).npu() + torch.eye(4).npu() for _ in range(2))
fallbacks = {name: told(call) for name, call in WITHOUT_KERNEL.items()}
found = []
for case in cases():
    for dtype in sys.argv[1:] or case.dtypes:
        try:
            check_case(case, "ascend", "npu", (dtype,))
            found.append([case.name, case.call, dtype, ""])
        except Exception:
            found.append([case.name, case.call, dtype, traceback.format_exc()])
print(json.dumps([found, fallbacks]))
"""

pytestmark = pytest.mark.usefixtures("emulation")


def cases() -> list[Case]:
    """Calls that the converter rewrites for Ascend."""
    return [case for case in CASES if case.entry(ENTRIES) is not None]


def is_fused_optimizer(entry: Similar | None) -> bool:
    return entry is not None and ".NpuFused" in entry.use


def executed(*dtypes: str) -> tuple[dict[tuple[str, str, str], str], dict[str, str]]:
    """Name, call and dtype -> what went wrong; name of what has no kernel -> what the plugin wrote at its call."""
    found, fallbacks = answer(PROGRAM, *dtypes, folder=ROOT)
    return {(name, call, dtype): wrong for name, call, dtype, wrong in found}, fallbacks


def test_every_entry_computes_what_the_original_does() -> None:
    """Forward, and backward where the inputs have gradients; optimizers train five steps. What the table says runs on
    the CPU does, and the plugin says so once for each operator."""
    found, fallbacks = executed()
    assert set(found) == {(case.name, case.call, dtype) for case in cases() for dtype in case.dtypes}
    assert {called: wrong for called, wrong in found.items() if wrong} == {}
    entries = [entry for entry in ENTRIES if ON_THE_CPU in entry.why.en]
    assert {entry.cuda for entry in entries} == set(WITHOUT_KERNEL)
    told = "".join(fallbacks.values())
    assert [entry.cuda for entry in entries if entry.why.en.split()[0] not in told] == []


@pytest.mark.long
def test_every_entry_in_every_dtype() -> None:
    """The plugin's fused optimizers take no bfloat16, as the remark of their entries says."""
    found, _ = executed(*HALF)
    assert len(found) == len({(case.name, case.call) for case in cases()}) * len(HALF)
    refused = {
        (case.name, case.call, "bfloat16") for case in cases() if is_fused_optimizer(case.entry(ENTRIES))
    }
    assert {called for called, wrong in found.items() if wrong} == refused
    for called in refused:
        assert "parameters must be either float32 or float16" in found[called]
    assert all("bfloat16" in entry.remark.en for entry in ENTRIES if is_fused_optimizer(entry))

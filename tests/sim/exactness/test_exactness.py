"""The simulated device of every vendor computes what the CPU computes, in the circumstances of a proof."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.sim.exactness"


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", VENDORS)
def test_check(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)


REFERENCE = """
import json, torch, warnings
from torch.utils.data import DataLoader

def look():
    def error(call):
        try:
            return repr(call())
        except Exception as error:
            return str(error)
    return [error(call) for call in (
        lambda: torch._C._get_privateuse1_backend_name(),
        lambda: torch._C._get_accelerator(),
        lambda: torch.zeros(1).pin_memory(),
        lambda: torch.zeros(1, device="privateuseone"),
        lambda: torch.autograd.is_multithreading_enabled(),
        lambda: torch.optim.SGD([torch.zeros(1)], 0.1),
        lambda: [batch.tolist() for batch in DataLoader(range(4), batch_size=2)],
    )]

before = look()
with warnings.catch_warnings():
    warnings.simplefilter("error")
    from torchferry.sim.reference import compute_as_cuda
    compute_as_cuda()
    compute_as_cuda()
assert look() == before, look()
x = torch.ones(2, 2, dtype=torch.float16)
with torch.autocast("cpu", dtype=torch.float16):
    found = [x.exp(), x @ x, torch.nn.functional.avg_pool2d(x[None], 2)]
assert x.exp().dtype is torch.float16
mean, _ = torch.batch_norm_stats(torch.arange(8.0).view(2, 2, 2), 1e-5)
assert mean.tolist() == [2.5, 4.5], mean
print([str(y.dtype) for y in found])
"""


def test_a_process_with_a_cpu_only_takes_cudas_policies_and_stays_as_it_was() -> None:
    run = subprocess.run([sys.executable, "-c", REFERENCE], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "['torch.float32', 'torch.float16', 'torch.float16']", run.stderr
    assert run.stderr == ""

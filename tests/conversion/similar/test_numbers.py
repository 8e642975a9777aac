"""Every equivalent in every vendor's table computes what the original does: both are executed and compared."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import target
from tests.conversion.similar.cases import CASES, Case
from tests.conversion.similar.running import check_case
from tests.sim.checking import VENDORS as SIMULATED
from tests.sim.checking import check_names, results, verdict
from torchferry.vendors.registry import vendor_names
from torchferry.vendors.similar import Similar, load_similar

PACKAGE = "tests.conversion.similar"
TARGETS = [*vendor_names(), "portable"]
ON_HOST = [name for name in TARGETS if name not in SIMULATED]


def _entries(to: str) -> tuple[Similar, ...]:
    return load_similar(target(to).vendor.folder)


@pytest.mark.parametrize("to", TARGETS)
def test_every_entry_is_executed(to: str) -> None:
    executed = [case.entry(_entries(to)) for case in CASES]
    left = [(entry.cuda, entry.when) for entry in _entries(to) if entry.use and entry not in executed]
    assert not left


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", SIMULATED)
def test_on_the_simulated_device(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)


@pytest.mark.parametrize("to", ON_HOST)
def test_plain_torch_on_the_cpu(to: str) -> None:
    cases = [case for case in CASES if case.entry(_entries(to)) is not None]
    assert cases
    for case in cases:
        check_case(case, to, "cpu")


def test_a_wrong_equivalent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("xformers.ops.unbind", "unbind(x, dim=0)[0] + 0", {"x": (2, 2)})
    monkeypatch.setattr("torch.unbind", lambda x, dim: x.unbind(1 - dim))
    with pytest.raises(AssertionError, match="close"):
        check_case(case, "portable", "cpu")

"""Every equivalent in Ascend's table, executed with the vendor's own plugin, computes what the original does on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.similar.cases import CASES
from tests.emulate.running import answer
from torchferry.vendors.registry import get_vendor
from torchferry.vendors.similar import load_similar

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import json, traceback, torch, torch_npu
from tests.conversion.similar.cases import CASES
from tests.conversion.similar.running import check_case
from torchferry.vendors.registry import get_vendor
from torchferry.vendors.similar import load_similar

entries, found = load_similar(get_vendor("ascend").folder), []
for case in CASES:
    if case.entry(entries) is not None:
        try:
            check_case(case, "ascend", "npu")
            found.append([case.name, case.call, ""])
        except Exception:
            found.append([case.name, case.call, traceback.format_exc()])
print(json.dumps(found))
"""


@pytest.mark.usefixtures("emulation")
def test_every_entry_computes_what_the_original_does() -> None:
    """Forward, and backward where the inputs have gradients; optimizers train five steps."""
    entries = load_similar(get_vendor("ascend").folder)
    found: list[tuple[str, str, str]] = answer(PROGRAM, folder=ROOT)
    assert [(name, call) for name, call, _ in found] == [
        (case.name, case.call) for case in CASES if case.entry(entries) is not None
    ]
    assert {f"{name}: {call}": wrong for name, call, wrong in found if wrong} == {}

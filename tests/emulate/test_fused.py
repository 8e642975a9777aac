"""Fused functions of the vendor's own plugin give what their formulas give, forward and backward."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulate.running import answer

pytestmark = pytest.mark.usefixtures("emulation")

FUSED = Path(__file__).with_name("fused.py")


def test_fused_functions_give_what_their_formulas_give() -> None:
    distances = answer(FUSED.read_text("utf-8"))
    assert len(distances) > 40
    assert {name: found for name, found in distances.items() if found != 0} == {}

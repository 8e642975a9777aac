"""Layers on the vendor's own plugin whose functions have something special about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulate.running import answer

pytestmark = pytest.mark.usefixtures("emulation")

LAYERS = Path(__file__).with_name("layers.py")


def test_results_and_gradients_are_those_of_the_cpu() -> None:
    distances = answer(LAYERS.read_text("utf-8"))
    assert distances
    far = {
        name: found
        for name, (found, most) in distances.items()
        if isinstance(found, str) or not found <= most
    }
    assert far == {}

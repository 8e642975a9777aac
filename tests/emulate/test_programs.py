"""Programs of many kinds train on the vendor's own plugin as they do on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulate.running import answer

pytestmark = pytest.mark.usefixtures("emulation")

PROGRAMS = Path(__file__).with_name("programs.py")


def test_programs_train_as_on_the_cpu() -> None:
    distances = answer(PROGRAMS.read_text("utf-8"))
    assert len(distances) > 20
    far = {
        name: found
        for name, (found, most) in distances.items()
        if isinstance(found, str) or not found <= most
    }
    assert far == {}

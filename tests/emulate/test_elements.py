"""Elements on the vendor's own plugin: random numbers as the CPU draws them, places, shapes, dtypes, reductions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulate.running import answer

pytestmark = pytest.mark.usefixtures("emulation")

ELEMENTS = Path(__file__).with_name("elements.py")


def test_every_bit_is_that_of_the_cpu() -> None:
    found = answer(ELEMENTS.read_text("utf-8"), TASK_QUEUE_ENABLE="0")
    assert found
    assert {name: wrong for name, wrong in found.items() if wrong} == {}

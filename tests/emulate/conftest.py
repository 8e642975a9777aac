"""Tests that need the vendor's plugin ask for `emulation`; where it is not set up they are skipped, with the reason."""

from __future__ import annotations

import pytest

from tests.emulate.running import why_not


@pytest.fixture(scope="session")
def emulation() -> None:
    """The vendor's plugin on the emulated device."""
    if why_not():
        pytest.skip(why_not())

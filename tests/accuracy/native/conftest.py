"""Every test runs with the compiled kernels and with what stands in for them."""

from __future__ import annotations

import pytest

from torchferry.accuracy.native import differences, library
from torchferry.accuracy.native.standin import statistics_at

IMPLEMENTATIONS = ("compiled", "numpy")


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Switches to one of them."""
    if request.param == "numpy":
        monkeypatch.setattr(library, "kernels", lambda: (statistics_at, statistics_at))
        monkeypatch.setattr(differences, "_kernels", lambda: None)
    else:
        assert library.kernels()[0] is not statistics_at, "there is a compiler, but the kernels are not built"
    return str(request.param)

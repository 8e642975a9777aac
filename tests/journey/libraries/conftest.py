"""Data for the programs of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journey.libraries.running import make_pictures


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of pictures."""
    return make_pictures(tmp_path_factory.mktemp("pictures") / "data")

"""Settings for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.browsing import CHROMIUM

# Examples are not timed: a busy machine must not fail a test.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

# For the processes that tests start: two of pytest's own share the machine, so more threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).with_name("startup")), os.environ.get("PYTHONPATH")])
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield instance
        instance.close()

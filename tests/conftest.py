"""Settings for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.browsing import CHROMIUM

# Examples are not timed: a busy machine must not fail a test.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield instance
        instance.close()

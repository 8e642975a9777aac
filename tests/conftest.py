"""Settings for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import schemas
from tests.browsing import CHROMIUM
from torchferry.report.formats import Reports

# Examples are not timed: a busy machine must not fail a test.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

# For the processes that tests start: two of pytest's own share the machine, so more threads would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(__file__).with_name("startup")), os.environ.get("PYTHONPATH")])
)

# Where the vendor's plugin is set up, programs that do not say which device they want would get the emulated one.
os.environ["TORCHFERRY_EMULATE"] = "0"

# A job in the background of a script, or of nohup, begins with these ignored, and so would the processes that tests
# start and interrupt. A handler of Python's does not outlive the start of another program: they have the defaults.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


# Whatever a test has reported as JSON in its own process must fit the published schema.
Reports.pieces = schemas.checking(Reports.pieces)  # type: ignore[method-assign, assignment]


@pytest.fixture(autouse=True)
def nothing_left_watching() -> Iterator[None]:
    """A test that leaves a dispatch mode on fails itself, and not those after it."""
    yield
    if "torch.utils._python_dispatch" not in sys.modules:
        return
    from torch.utils import _python_dispatch

    left = []
    while (mode := _python_dispatch._get_current_dispatch_mode()) is not None:
        _python_dispatch._pop_mode()
        left.append(type(mode).__name__)
    assert not left, f"the test left these modes on: {left}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield instance
        instance.close()

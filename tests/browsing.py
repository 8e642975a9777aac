"""Pages in a real browser, which the fixture `browser` is; a test module takes the mark from here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="none of chromium, chromium-browser, google-chrome is installed"
    ),
]
Open = Callable[..., Any]


@contextmanager
def quiet_pages(browser: Any) -> Iterator[Open]:
    """A function that opens a file; at the end no page may have complained or asked for anything but itself."""
    troubles: list[str] = []
    pages = []

    def open_file(path: Path, fragment: str = "", **options: Any) -> Any:
        def check_request(request: Any) -> None:
            if not request.url.startswith(path.as_uri()) and request.url != "data:,":
                troubles.append(request.url)

        page = browser.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("request", check_request)
        page.goto(path.as_uri() + fragment)
        return page

    yield open_file
    for page in pages:
        page.close()
    assert troubles == []

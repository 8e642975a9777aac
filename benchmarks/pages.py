"""How long a browser takes to show a page: the first picture of it, and until its scripts have drawn everything.

Run as `python -m benchmarks.pages`; it needs Chromium and the reports of the tests.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.browsing import CHROMIUM
from tests.readiness.samples import large as large_readiness
from tests.report.samples import large_report

from torchferry.conversion.planning import cores
from torchferry.readiness.report import REPORTS as READINESS
from torchferry.report.findings import REPORTS as FINDINGS

ROUNDS = 7
PAGES = {
    "work list, 5,000 findings": lambda path: FINDINGS.write(large_report(5_000), path),
    "work list, 20,000 findings": lambda path: FINDINGS.write(large_report(20_000), path),
    "operators, 5,000 uses": lambda path: READINESS.write(large_readiness(5_000), path),
}
# Milliseconds since the page was asked for: its first picture, and the end of its scripts.
_TIMES = """() => {
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const [load] = performance.getEntriesByType("navigation");
  return [paint ? paint.startTime : NaN, load.domContentLoadedEventEnd];
}"""


def main() -> None:
    """Print the table."""
    from playwright.sync_api import sync_playwright

    print(f"{time.strftime('%Y-%m-%d')}, {cores()} cores")
    print(f"{'':<28} {'size':>8} {'first paint':>12} {'complete':>10}")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        for name, write in PAGES.items():
            path = Path(folder) / "page.html"
            write(path)
            times = [opened(browser, path) for _ in range(ROUNDS)]
            paint, complete = (statistics.median(column) for column in zip(*times, strict=True))
            size = path.stat().st_size / 1e6
            print(f"{name:<28} {size:5.1f} MB {paint:9.0f} ms {complete:7.0f} ms")
        browser.close()


def opened(browser: Any, path: Path) -> tuple[float, float]:
    """Both times of one visit, in a browser that has seen nothing before."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri(), wait_until="load")
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length > 0")
    paint, complete = page.evaluate(_TIMES)
    page.close()
    return paint, complete


if __name__ == "__main__":
    main()

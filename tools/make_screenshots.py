"""Pictures of the pages for the docs: `python -m tools.make_screenshots [NAME...]` writes docs/images/*.png.

The reports are those of the tests, so that every picture shows what the code makes now. It needs Chromium and Pillow.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browsing import CHROMIUM
from tests.migration.making import a_bit_of_everything
from tests.report.every_page import EVERY_PAGE

from torchferry.migration.index import write_index
from torchferry.report.formats import Options
from torchferry.report.provenance import EPOCH
from torchferry.text import Language

IMAGES = Path(__file__).parents[1] / "docs" / "images"
MOST_BYTES = 150_000
_DATE = "1795000000"


@dataclass(frozen=True)
class Picture:
    """One file: which page it shows, where, and how."""

    page: str  # of EVERY_PAGE, or "index"
    command: str  # that a user would have typed
    dark: bool = False
    language: Language = "en"
    size: tuple[int, int] = (1280, 820)
    click: str = ""  # what is clicked before
    show: str = ""  # the element that is scrolled to the top


PICTURES = {
    "work-list": Picture("findings", "ferry scan resnet-trainer --to ascend -o report.html"),
    "work-list-dark": Picture("findings", "ferry scan resnet-trainer --to ascend -o report.html", dark=True),
    "work-list-zh": Picture(
        "findings", "ferry scan resnet-trainer --to ascend -o report.html", language="zh"
    ),
    "work-list-phone": Picture(
        "findings", "ferry scan resnet-trainer --to ascend -o report.html", size=(390, 844)
    ),
    "changes": Picture(
        "findings",
        "ferry convert resnet-trainer --to ascend -o out",
        click="[data-view=files]",
    ),
    "ops": Picture("ops", "ferry ops --to ascend,cambricon -o ops.html train.py"),
    "proof": Picture("proof", "ferry prove --to ascend -o proof.html train.py"),
    "proof-curves": Picture("proof", "ferry prove --to ascend -o proof.html train.py", show="[id=curves]"),
    "compare": Picture("compare", "ferry compare npu.h5 gpu.h5 -o compare.html"),
    "compare-dark": Picture("compare", "ferry compare npu.h5 gpu.h5 -o compare.html", dark=True),
    "analyze": Picture("analyze", "ferry analyze trace.json -o speed.html"),
    "watch": Picture("watch", "ferry watch show npu.h5 gpu.h5 -o curves.html"),
    "index": Picture("index", "ferry report"),
    "index-dark": Picture("index", "ferry report", dark=True),
}


def main() -> None:
    """Make all pictures, or those that are named."""
    from playwright.sync_api import sync_playwright

    os.environ[EPOCH] = _DATE
    IMAGES.mkdir(exist_ok=True)
    wanted = sys.argv[1:] or list(PICTURES)
    arguments = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--font-render-hinting=none"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        for name in wanted:
            data = picture(browser, PICTURES[name])
            (IMAGES / f"{name}.png").write_bytes(data)
            print(f"{name}.png: {len(data) / 1000:.0f} KB")
        browser.close()


def picture(browser: Any, wanted: Picture) -> bytes:
    """The PNG, small enough for a repository."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as folder:
        path = in_folder(Path(folder), wanted, lambda: write_page(Path(folder), wanted))
        width, height = wanted.size
        scheme = "dark" if wanted.dark else "light"
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto(path.as_uri())
        page.wait_for_timeout(600)
        if wanted.click:
            page.click(wanted.click)
        if wanted.show:
            page.evaluate("name => document.querySelector(name).scrollIntoView()", wanted.show)
        page.wait_for_timeout(200)
        shot = page.screenshot()
        page.close()
    shot_in_colours = Image.open(io.BytesIO(shot)).convert("RGB")
    # this method keeps the colours of small dots
    drawn = shot_in_colours.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small = io.BytesIO()
    drawn.save(small, "PNG", optimize=True)
    if len(small.getvalue()) > MOST_BYTES:
        raise SystemExit(f"{wanted.page}: {len(small.getvalue())} bytes; make the picture smaller")
    return small.getvalue()


def in_folder(folder: Path, wanted: Picture, make: Callable[[], Path]) -> Path:
    """What is made as if the command ran in this folder: a page says how it was made."""
    before, words = Path.cwd(), sys.argv
    os.chdir(folder)
    sys.argv = wanted.command.split()
    try:
        return make()
    finally:
        os.chdir(before)
        sys.argv = words


def write_page(folder: Path, wanted: Picture) -> Path:
    """The page that is shown."""
    if wanted.page == "index":
        return write_index(a_bit_of_everything(folder), wanted.language)
    path = folder / "page.html"
    path.write_bytes(EVERY_PAGE[wanted.page](folder, Options(wanted.language)))
    return path


if __name__ == "__main__":
    main()

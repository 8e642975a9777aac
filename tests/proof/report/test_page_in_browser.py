"""The page of a proof in a real browser: plots, hovering, languages, hostile text, no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import NEEDS_BROWSER, Open, quiet_pages
from torchferry.proof.model import Proof
from torchferry.proof.report import REPORTS
from torchferry.report.formats import Options

from .samples import HOSTILE, SAMPLES, distributed, empty, hostile, long, not_finite, sample

pytestmark = NEEDS_BROWSER


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a proof."""
    with quiet_pages(browser) as open_file:

        def open_proof(proof: Proof, language: str = "en", logs: Any = None, **options: Any) -> Any:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
            REPORTS.write(proof, path, Options(language, logs=logs or {}))  # type: ignore[arg-type]
            return open_file(path, **options)

        yield open_proof


def test_the_verdicts_and_the_operator(open_page: Open) -> None:
    page = open_page(sample())
    assert page.inner_text("h1") == "train.py --lr 0.1 → ascend, cambricon, tecorigin"
    assert page.inner_text(".card h2") == "Not equal, or not compared"
    assert [" ".join(text.split()) for text in page.locator(".verdicts li").all_inner_texts()] == [
        "ascend equal bit for bit, 20 steps compared",
        "cambricon different, 20 steps compared",
        "tecorigin failed",
    ]
    operator = page.inner_text(".operator")
    assert "aten::convolution" in operator and "train.py:57" in operator and "0.05 of its norm" in operator


def test_hovering_shows_the_values_of_all_runs(open_page: Open) -> None:
    page = open_page(sample())
    plot = page.locator(".plot").first
    box = plot.bounding_box()
    assert not page.locator(".values").first.is_visible()
    plot.hover(position={"x": box["width"] * (70 / 860) + 1, "y": box["height"] / 2})
    assert page.locator(".values").first.inner_text().splitlines() == [
        "Step 1",
        "original on the CPU: 2.241426",
        "ascend: 2.241426",
        "cambricon: 2.241426",
        "tecorigin: 2.241426",
    ]
    page.mouse.move(1, 1)
    assert not page.locator(".values").first.is_visible()


def test_the_keyboard_moves_along_the_curves(open_page: Open) -> None:
    page = open_page(sample())
    page.focus(".plot >> nth=0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".values").first.inner_text().startswith("Step 2\n")
    page.keyboard.press("Escape")
    assert not page.locator(".values").first.is_visible()


def test_without_javascript(open_page: Open) -> None:
    """Everything is there but hovering and the choice of language; marks have the browser's own tooltips."""
    page = open_page(sample(), java_script_enabled=False)
    assert page.locator("figure").count() == 4  # of each chart also the differences
    assert page.locator(".plot .curve").count() == 8 + 2
    assert page.locator(".plot .mark title").first.text_content() == "original on the CPU, 1: 2.241426"
    assert not page.is_visible(".languages")
    page.click("summary >> nth=1")
    assert page.locator("details[open] tr.differs").count() == 16


def test_switch_language(open_page: Open) -> None:
    page = open_page(sample())
    assert page.get_attribute("[data-language=en]", "aria-pressed") == "true"
    page.click("[data-language=zh-CN]")
    assert page.inner_text(".card h2") == "不相等，或未能比较"
    assert page.inner_text("figure h3 >> nth=0") == "损失"
    page.click("[data-language=en]")
    assert page.inner_text(".card h2") == "Not equal, or not compared"
    assert open_page(sample(), "zh").inner_text(".card h2") == "不相等，或未能比较"


def test_each_language_is_whole(open_page: Open) -> None:
    """No word of one language is left over in the other."""
    page = open_page(sample(), "zh")
    for detail in page.locator("summary").all():
        detail.click()
    text = page.inner_text("main") + page.inner_text(".overview")
    for word in ("Step", "Loss", "equal", "differ", "Settings", "norm of"):
        assert word not in text


def test_hostile_text_is_text(open_page: Open) -> None:
    page = open_page(hostile(), logs={HOSTILE: HOSTILE})
    page.locator(".plot").first.hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert (
        page.locator("h1")
        .inner_text()
        .startswith("train.py </script><img src=x onerror='window.hacked=1'>\\u202e")
    )


def test_log_tails(open_page: Open) -> None:
    page = open_page(sample(), logs={"tecorigin": "Traceback\n  File 'train.py'\nValueError: boom"})
    assert page.inner_text(".logs pre").splitlines()[-1] == "ValueError: boom"
    assert "tecorigin.stderr" in page.inner_text(".logs")


def test_distributed(open_page: Open) -> None:
    page = open_page(distributed())
    titles = page.locator("figure h3").all_inner_texts()
    assert [title for title in titles if "Loss" in title] == ["Loss · rank 0", "Loss · rank 1"]
    assert "Steps rank 1" in " ".join(page.locator("summary").all_inner_texts())


def test_ten_thousand_steps(open_page: Open) -> None:
    page = open_page(long())
    assert "smallest and the largest of each group of 34" in page.inner_text("figure >> nth=0")
    assert page.locator("figure >> nth=0 >> .mark").count() <= 60
    page.click("summary >> nth=0")
    assert "9900 steps not shown" in page.inner_text("details[open]")


def test_not_finite(open_page: Open) -> None:
    page = open_page(not_finite())
    assert page.locator("figure >> nth=0 >> .bad").count() == 3  # one path for each run
    assert "not a finite number" in page.inner_text("figure >> nth=0")


def test_empty(open_page: Open) -> None:
    page = open_page(empty())
    assert page.inner_text(".overview") == "Nothing was compared."
    assert page.locator("figure").count() == 0


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_the_page(open_page: Open, name: str, width: int) -> None:
    page = open_page(SAMPLES[name](), viewport={"width": width, "height": 844})
    for detail in page.locator("summary").all()[:2]:
        detail.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

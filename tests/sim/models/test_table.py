"""The published table: both pages hold every model, and failures would be shown."""

from __future__ import annotations

from typing import Any

import pytest
from tools import make_model_table

from torchferry.text import Language
from torchferry.vendors.registry import get_vendor

from .names import GUIDE_NAMES

TRAINED: dict[str, Any] = {
    "name": "toy",
    "origin": "own",
    "source": "here",
    "note": ["small", "小"],
    "parameters": 1234567,
    "turns": 2,
    "losses": [1.5, 2.5, 1.25, 2.25],
    "equal": True,
    "cpu_seconds": 0.5,
    "device_seconds": 0.75,
}


@pytest.mark.parametrize("language", make_model_table.LANGUAGES)
def test_the_page_has_every_model_in_order(language: Language) -> None:
    text = (make_model_table.ROOT / "docs" / language / make_model_table.PAGE).read_text("utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    assert [row[1] for row in rows] == list(GUIDE_NAMES)


def test_the_pages_give_the_same_losses() -> None:
    english, chinese = (
        (make_model_table.ROOT / "docs" / language / make_model_table.PAGE).read_text("utf-8")
        for language in make_model_table.LANGUAGES
    )
    rows = [[line.split(" | ")[:6] for line in text.splitlines()[9:]] for text in (english, chinese)]
    assert rows[0] == rows[1]


def test_a_row_has_both_steps_of_every_turn() -> None:
    row = make_model_table.row(7, TRAINED, "en")
    assert row == "| 7 | toy | own: here | 1,234,567 | 1.5 / 2.5 | 1.25 / 2.25 | yes | 0.50 / 0.75 | small |"


def test_what_is_not_equal_is_said() -> None:
    different = {**TRAINED, "equal": False}
    broken = {"name": "broken", "error": "Traceback\nRuntimeError: a | b"}
    assert "| 否 |" in make_model_table.row(1, different, "zh")
    assert make_model_table.row(1, broken, "en").endswith("| does not train | | `RuntimeError: a \\| b` |")
    page = make_model_table.page(get_vendor("ascend"), [TRAINED, different, broken], "en")
    assert "1 of 3 are" in page

"""The examples of the page run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_run(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / language / "how-to/affinity.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "affinity.md", "exec"), names)
    assert capsys.readouterr().out.startswith("torch.optim.AdamW")

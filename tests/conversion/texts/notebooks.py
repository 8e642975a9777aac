"""Shorthand for tests of notebooks: write one, convert it, look at its cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.conversion.rewriting import target
from torchferry.conversion.file import Conversion, FileJob
from torchferry.conversion.rule import Rule, RuleSet, all_rules
from torchferry.conversion.texts.kinds import converter_of
from torchferry.source.decode import decode

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def code(*lines: str, **more: Any) -> dict[str, Any]:
    """A code cell, its source given by lines without their ends."""
    source = "\n".join(lines).splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": source} | more


def markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": [text]}


def notebook(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def run(text: str | dict[str, Any], to: str = "ascend", *more: Rule) -> Conversion:
    written = text if isinstance(text, str) else json.dumps(text, indent=1) + "\n"
    rules = tuple(rule for rule in all_rules() if not rule.option)
    job = FileJob(target(to), RuleSet((*rules, *more)))
    data = written.encode("utf-8")
    convert = converter_of("work.ipynb", data)
    assert convert is not None
    return convert(decode(data), "work.ipynb", job)


def converted(*cells: dict[str, Any], to: str = "ascend") -> list[str]:
    """The sources of the cells afterwards."""
    before = notebook(*cells)
    conversion = run(before, to)
    assert not conversion.failure, conversion.failure
    after = json.loads(conversion.new_text) if conversion.new_text else before
    return ["".join(cell["source"]) for cell in after["cells"]]

"""The text of comparing.py, as it goes into the file of a case."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_BEGIN = "# --- the part that goes into a case begins here\n"
_REMARK = re.compile(r"  # noqa: \w+$", re.MULTILINE)  # for this repository's own checks


@cache
def library() -> str:
    """Everything that a case calls."""
    text = Path(__file__).with_name("comparing.py").read_text("utf-8")
    return _REMARK.sub("", text.partition(_BEGIN)[2].lstrip("\n"))

"""The programs that both devices run: a name, and lines that leave what is compared in `seen`.

`torch`, `device` ("npu:0"), `module` (torch.npu) and `plugin` (torch_npu) are there. A program that raises is compared by
the error.
"""

from __future__ import annotations

import re
from pathlib import Path

_HEAD = re.compile(r"^## (.+?): (.+)$", re.MULTILINE)
FILE = Path(__file__).with_name("programs.txt")


def programs() -> dict[str, str]:
    """Name ("area: what it does") -> source, in the order of the file."""
    text = FILE.read_text("utf-8")
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = {
        f"{head[1]}: {head[2]}": text[head.end() : end].strip() + "\n"
        for head, end in zip(heads, ends, strict=True)
    }
    if len(found) != len(heads):
        raise ValueError("two programs have the same name")
    return found

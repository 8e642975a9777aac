"""The records of the audit: a site (one occurrence of a trigger word), its class, and the verdict on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

MUST, HUMAN, KEEP, UNSURE = "must", "human", "keep", "unsure"
CLASSES = (MUST, HUMAN, KEEP, UNSURE)

TRIGGER = re.compile(
    r"cuda|nccl|cudnn|nvtx|(?<![a-z])apex|triton|flash_attn|xformers|pynvml|nvidia[-_]smi|bitsandbytes"
    r"|cupy|load_inline|DataParallel",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Call:
    """What the classifier says about an occurrence: its class, why, and the family of a `human` site."""

    cls: str
    reason: str
    family: str = ""
    path: str = ""
    """The dotted name the occurrence resolves to, when it resolves through an import."""


@dataclass(frozen=True)
class Site:
    """One occurrence of a trigger word in an original file."""

    path: str
    line: int
    col: int
    offset: int
    text: str
    word: str
    first_line: int
    last_line: int
    call: Call

    @property
    def where(self) -> str:
        """path:line:col, as editors understand it."""
        return f"{self.path}:{self.line}:{self.col}"


@dataclass(frozen=True)
class Vendor:
    """The few facts of the target that the audit needs."""

    device: str
    backend: str
    plugin: str


@dataclass(frozen=True)
class Verdict:
    """How a site, a line or a file came out: `ok` or not, under which heading, and why."""

    ok: bool
    group: str
    outcome: str
    path: str
    line: int
    detail: str
    site: Site | None = None

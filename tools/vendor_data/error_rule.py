"""What is known of one sort of error message, as the tables of error rules hold it."""

from __future__ import annotations

from typing import NamedTuple

GUIDE = "Ascend PyTorch porting guide, FAQ"
PYTORCH = "pytorch/pytorch, wording of its messages"


class Rule(NamedTuple):
    """One rule. {name} in the texts is the group of that name in the pattern, {name|other} the one that was found."""

    id: str
    regex: str  # "": known by its codes alone
    kind: str
    cause: str
    cause_zh: str
    remedy: str
    remedy_zh: str
    source: str = ""  # "": that of its facts
    rank: int = 1  # lower ones are tried first
    effect: str = ""  # "": an error
    codes: tuple[str, ...] = ()  # ("*",): every code that no other rule names
    late: str = ""  # the device reports it later than it happens, unless this is set
    facts: tuple[str, ...] = ()  # patterns of errors.json that this rule stands for, beside its own
    frames: str = ""  # fits only exceptions that went through files with such paths

"""What a run that failed has to say for itself: the last traceback of its error output. Imports no torch."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

_TRACEBACK = re.compile(r"^.*Traceback \(most recent call last\):", re.MULTILINE)
# torchrun reports the failure of its processes with a traceback of its own, which says nothing about theirs.
_OF_TORCHRUN = ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "distributed/run.py")
_LAST_BYTES = 1 << 20
_LAST_LINES = 20


def last_words(log: Path) -> str:
    """From the last traceback on; without any, the last lines."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LAST_BYTES))
        text = file.read().decode("utf-8", "replace")
    begins = [match.start() for match in _TRACEBACK.finditer(text)]
    tracebacks = [text[begin:end] for begin, end in itertools.pairwise([*begins, len(text)])]
    own = [each for each in tracebacks if not any(words in each for words in _OF_TORCHRUN)]
    if own:
        return own[-1].rstrip("\n")
    return "\n".join(text.rstrip("\n").split("\n")[-_LAST_LINES:])

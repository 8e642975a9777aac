"""What the process that replays is asked for, and what it answers. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

LAST_LENGTH = 200  # bytes: the name of the operator that is being called


@dataclass(frozen=True)
class Left:
    """A call that is not in the new record."""

    number: int
    operator: str
    module: str
    reason: str
    is_failure: bool  # the device did not do it; otherwise it can't be done alone


@dataclass(frozen=True)
class Request:
    """One record, on one device."""

    record: str
    output: str
    device: str
    vendor: str
    simulated: bool
    last: str  # the file that says which operator is being called
    plugin: str = ""  # the vendor's real one
    modules: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    shows_progress: bool = False

    def encode(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @staticmethod
    def decode(text: str) -> Request:
        """From text."""
        fields = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return Request(**{**fields, **lists})


@dataclass(frozen=True)
class Outcome:
    """What became of the calls of one record."""

    calls: int = 0
    nbytes: int = 0
    left: tuple[Left, ...] = ()
    fallen_back: tuple[str, ...] = ()  # operators that the simulated device has left to the CPU
    problem: str = ""  # why there is no new record

    @staticmethod
    def decode(text: str) -> Outcome:
        """From text."""
        fields = json.loads(text)
        left = tuple(Left(**each) for each in fields["left"])
        return Outcome(**{**fields, "left": left, "fallen_back": tuple(fields["fallen_back"])})

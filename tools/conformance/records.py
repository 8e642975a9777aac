"""What a conformance run says: one result per operator and dtype, and the file that holds them all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any


class Outcome(str, Enum):
    """How an operator did in one dtype."""

    PASS = "pass"  # the same, bit for bit
    CLOSE = "close"  # the same but for rounding
    FAIL = "fail"
    CRASH = "crash"  # the process died or hung
    SKIPPED = "skipped"


class Kind(str, Enum):
    """What differs between the device and the CPU."""

    ERROR = "error"  # one raises and the other does not, or they raise different types
    STRUCTURE = "structure"  # more, fewer or other things returned
    DEVICE = "device"
    DTYPE = "dtype"
    SHAPE = "shape"
    STRIDE = "stride"
    VIEW = "view"  # what is a view, and whose memory it shows
    GRADIENT = "gradient"  # whether a result takes part in the backward pass
    VALUE = "value"
    ROUNDING = "rounding"  # values within the usual tolerances


# In how a result lies in memory, or by rounding.
HARMLESS = (Kind.STRIDE, Kind.VIEW, Kind.ROUNDING)


@dataclass(frozen=True)
class Difference:
    """One thing that differs: where it was seen and what it is, in words."""

    kind: Kind
    check: str  # forward, in-place, backward...
    sample: int
    where: str  # output[0], gradient of args[1]...
    words: str

    def __str__(self) -> str:
        return f"sample {self.sample}, {self.check}, {self.where}: {self.words}"


@dataclass(frozen=True)
class Result:
    """One operator in one dtype."""

    operator: str
    dtype: str
    outcome: Outcome
    samples: int = 0
    checks: int = 0  # comparisons made
    raised: int = 0  # of these, both sides raised the same type of error
    compared: int = 0  # of these, those without out=
    wrong: int = 0  # of those, the results themselves differ, not only how they lie in memory
    upcast: int = 0  # of these, the CPU has no kernel for the dtype: compared with float32, rounded
    refused: int = 0  # besides these, the limits of the emulated toolkit refuse what the CPU computes
    seconds: float = 0.0
    reason: str = ""  # skipped: a key of reasons.REASONS; crash: how the process ended and at what
    differences: tuple[Difference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values, without what is empty."""
        return {key: value for key, value in asdict(self).items() if value not in (0, "", ())}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Result:
        """The reverse of as_json."""
        differences = [
            Difference(**{**difference, "kind": Kind(difference["kind"])})
            for difference in data.get("differences", ())
        ]
        return Result(**{**data, "outcome": Outcome(data["outcome"]), "differences": tuple(differences)})


@dataclass(frozen=True)
class Run:
    """A whole run: what was compared and how it went."""

    vendor: str  # empty: the CPU was compared with itself
    torch: str
    python: str
    torchferry: str
    date: str
    seconds: float
    samples: int  # at most this many for an operator
    results: tuple[Result, ...]

    def write(self, path: Path) -> None:
        """One line per result, so that two runs can be compared with diff."""
        head = {key: value for key, value in vars(self).items() if key != "results"}
        lines = ",\n".join(json.dumps(result.as_json()) for result in self.results)
        path.write_text(f'{json.dumps(head)[:-1]},\n"results": [\n{lines}\n]}}\n', "utf-8")

    @staticmethod
    def read(path: Path) -> Run:
        """The reverse of write."""
        data = json.loads(path.read_text("utf-8"))
        return Run(**{**data, "results": tuple(map(Result.from_json, data["results"]))})

    def of_dtype(self, dtype: str) -> list[Result]:
        """The results of one dtype."""
        return [result for result in self.results if result.dtype == dtype]

    def dtypes(self) -> list[str]:
        """Those that were examined, in the order of the run."""
        return list(dict.fromkeys(result.dtype for result in self.results))


def pass_rate(results: list[Result]) -> float:
    """Percent of the operators that were not skipped that give the CPU's result, rounding allowed."""
    tested = [result for result in results if result.outcome is not Outcome.SKIPPED]
    passed = [result for result in tested if result.outcome in (Outcome.PASS, Outcome.CLOSE)]
    return 100 * len(passed) / len(tested) if tested else 100.0


def equal_rate(results: list[Result]) -> float:
    """Percent of the comparisons without out= in which the results are the CPU's, however they lie in memory."""
    compared = sum(result.compared for result in results)
    return 100 * (1 - sum(result.wrong for result in results) / compared) if compared else 100.0

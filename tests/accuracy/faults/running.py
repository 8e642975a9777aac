"""Records, replays and compares trainings with other kernels in the simulated device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from torchferry.accuracy.compare.comparing import compare_records
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.judge.model import CallPair, Judgement, Verdict
from torchferry.accuracy.model import Call
from torchferry.accuracy.replay.worker import replay
from torchferry.accuracy.report.sentences import BAD
from torchferry.readiness.model import Special

from .faults import Fault
from .trainings import TRAININGS, record

VENDOR = "ascend"
REPLAYED, ALONE = "replayed", "independent"  # from golden's inputs; a run of its own
WAYS = (REPLAYED, ALONE)


@cache
def device() -> str:
    """The simulated device, from now on."""
    from torchferry.sim import activate
    from torchferry.vendors.registry import get_vendor

    activate(VENDOR)
    return get_vendor(VENDOR).device_type


class Bench:
    """Golden records of all trainings in one folder; they are made when they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mine = folder, folder / "mine.h5"
        self._golden: dict[str, Record] = {}

    def golden(self, training: str) -> Record:
        if training not in self._golden:
            path = self.folder / f"{training}.h5"
            record(TRAININGS[training](device()), path)
            self._golden[training] = open_record(path)
        return self._golden[training]

    def compare(
        self, training: str, way: str, kernels: AbstractContextManager[Any] | None = None
    ) -> RankComparison:
        """With golden, what other kernels give; None: those of golden."""
        golden, path = self.golden(training), self.mine
        if way == REPLAYED:
            with kernels or nullcontext():
                replayed = replay(golden, path, device(), golden.header)
            assert not replayed.left, replayed.left
        else:
            record(TRAININGS[training](device()), path, kernels)
        with open_record(path) as mine:
            return compare_records(mine, golden)


@dataclass(frozen=True)
class Blamed:
    """What a comparison says of a fault."""

    fault: Fault
    way: str
    culprit: CallPair | None
    expected: int  # the number of the call
    alarms: int  # calls that are called faulty or suspicious

    @property
    def is_right(self) -> bool:
        return (
            self.culprit is not None
            and self.culprit.mine is not None
            and self.culprit.mine.number == self.expected
        )

    @property
    def judgement(self) -> Judgement:
        return self.culprit.judgement if self.culprit is not None else Judgement(Verdict.NORMAL)


def blame(bench: Bench, fault: Fault, way: str) -> Blamed:
    """Put a fault in, and see who is blamed."""
    comparison = bench.compare(fault.training, way, fault.kernels())
    with open_record(bench.mine) as mine:
        numbers = [call.number for call in mine.calls if _is_of(fault, call)]
    culprit = None if comparison.culprit is None else comparison.pairs[comparison.culprit]
    return Blamed(fault, way, culprit, numbers[fault.nth - 1], len(alarms(comparison)))


def _is_of(fault: Fault, call: Call) -> bool:
    if call.operator != f"aten::{fault.operator}":
        return False
    is_cast = ("dtype", Special("dtype", "bfloat16")) in call.arguments
    return fault.operator != "_to_copy" or is_cast


def alarms(comparison: RankComparison) -> list[CallPair]:
    """Calls of which more is said than that they differ by rounding."""
    return [pair for pair in comparison.pairs if pair.judgement.verdict in BAD]

"""Faults, controls and wrong arguments, both ways, as a table: python -m tests.accuracy.faults [--quick] [--json FILE] [NAME]"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.judge.model import Verdict
from torchferry.accuracy.report import sentences

from .arguments import ARGUMENTS
from .controls import CONTROLS, QUICK
from .faults import FAULTS
from .running import ALONE, WAYS, Bench, alarms, blame, device
from .trainings import SLOW, TRAININGS


@dataclass(frozen=True)
class Row:
    """What came of one fault, or of one control."""

    name: str
    training: str
    way: str
    is_control: bool
    is_right: bool  # the culprit is the call with the fault; of a control: there is none
    verdict: str = ""
    sort: str = ""
    alarms: int = 0
    reduced: int = 0
    said: str = ""
    is_argument: bool = False  # the program differs, and no kernel is wrong

    @property
    def group(self) -> str:
        return f"{'bf16' if self.training.endswith('bf16') else 'fp32'} {self.way}"

    def line(self) -> str:
        mark = " " if self.is_right else "!"
        kind = "control" if self.is_control else "argument" if self.is_argument else "fault"
        return (
            f"{mark} {kind:<9}{self.way:<12}{self.training:<15}{self.name[:52]:<53}{self.verdict:<11}{self.sort:<11}"
            f"{self.alarms:>3} {self.said}"
        )


def main() -> None:
    """Rows that are not right are marked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "name", nargs="?", default="", help="only faults and controls with this in their name"
    )
    parser.add_argument("--quick", action="store_true", help="a few of each kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows to a file")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for make in (_faults, _arguments, _controls):
            for row in make(bench, args.name, args.quick):
                rows.append(row)
                print(row.line(), flush=True)
    for group in dict.fromkeys(row.group for row in rows):
        of_group = [row for row in rows if row.group == group]
        controls = [row.is_right for row in of_group if row.is_control]
        arguments = [row.is_right for row in of_group if row.is_argument]
        faults = [row.is_right for row in of_group if not row.is_control and not row.is_argument]
        counts = {"faults": faults, "arguments": arguments, "controls": controls}
        print(
            f"{group}: {', '.join(f'{sum(each)} of {len(each)} {name}' for name, each in counts.items() if each)}"
        )
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows]), "utf-8")


def _faults(bench: Bench, name: str, quick: bool) -> Iterator[Row]:
    for fault in FAULTS:
        for way in WAYS if name in fault.name and (fault.quick or not quick) else ():
            found = blame(bench, fault, way)
            judgement = found.judgement
            said = judgement.why.en if judgement.why else ""
            if not found.is_right and found.culprit is not None and found.culprit.mine is not None:
                said = f"blames {found.culprit.mine.operator}: {said}"
            yield Row(
                fault.name, fault.training, way, False, found.is_right, judgement.verdict.value, judgement.sort.value,
                found.alarms, said=said,
            )  # fmt: skip


def _arguments(bench: Bench, name: str, quick: bool) -> Iterator[Row]:
    """And each program with the right arguments, as a control."""
    for argument in ARGUMENTS:
        if name not in argument.name or (quick and not argument.quick):
            continue
        for is_right in (False, True):
            comparison = argument.compare(bench.folder, device(), is_right=is_right)
            found = alarms(comparison)
            yield Row(
                argument.name, "Small", ALONE, is_right, not found if is_right else argument.is_named(comparison),
                alarms=len(found), said=sentences.headline(comparison).en, is_argument=not is_right,
            )  # fmt: skip


def _controls(bench: Bench, name: str, quick: bool) -> Iterator[Row]:
    """Quickly: of each training one way, by turns."""
    for row, (control, kernels) in enumerate(CONTROLS.items()):
        if name not in control or (quick and control not in QUICK):
            continue
        for column, training in enumerate(TRAININGS):
            if quick and training in SLOW:
                continue
            for way in [WAYS[(row + column) % len(WAYS)]] if quick else WAYS:
                comparison = bench.compare(training, way, kernels())
                found = alarms(comparison)
                said = "; ".join(str(pair.mine and pair.mine.operator) for pair in found[:3])
                yield Row(
                    control,
                    training,
                    way,
                    True,
                    not found,
                    alarms=len(found),
                    reduced=_reduced(comparison),
                    said=said,
                )


def _reduced(comparison: RankComparison) -> int:
    return sum(pair.judgement.verdict is Verdict.REDUCED for pair in comparison.pairs)


if __name__ == "__main__":
    main()

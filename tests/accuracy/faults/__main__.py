"""Faults and controls, both ways, as a table: python -m tests.accuracy.faults [--quick] [--json FILE] [NAME]"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from torchferry.accuracy.compare.model import Comparison, Verdict

from .controls import CONTROLS, QUICK
from .faults import FAULTS
from .running import WAYS, Bench, alarms, blame
from .trainings import TRAININGS


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

    @property
    def group(self) -> str:
        return f"{'bf16' if self.training.endswith('bf16') else 'fp32'} {self.way}"

    def line(self) -> str:
        mark = " " if self.is_right else "!"
        kind = "control" if self.is_control else "fault"
        return (
            f"{mark} {kind:<8}{self.way:<12}{self.training:<15}{self.name[:52]:<53}{self.verdict:<11}{self.sort:<11}"
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
        for row in (*_faults(bench, args.name, args.quick), *_controls(bench, args.name, args.quick)):
            rows.append(row)
            print(row.line(), flush=True)
    for group in dict.fromkeys(row.group for row in rows):
        faults = [row.is_right for row in rows if row.group == group and not row.is_control]
        controls = [row.is_right for row in rows if row.group == group and row.is_control]
        print(f"{group}: {sum(faults)} of {len(faults)} faults, {sum(controls)} of {len(controls)} controls")
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


def _controls(bench: Bench, name: str, quick: bool) -> Iterator[Row]:
    """Quickly: of each training one way, by turns."""
    for row, (control, kernels) in enumerate(CONTROLS.items()):
        if name not in control or (quick and control not in QUICK):
            continue
        for column, training in enumerate(TRAININGS):
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


def _reduced(comparison: Comparison) -> int:
    return sum(pair.judgement.verdict is Verdict.REDUCED for pair in comparison.pairs)


if __name__ == "__main__":
    main()

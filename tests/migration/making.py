"""A migration folder with a result of every kind of report, made of what the tests of its area have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.accuracy.report import samples as comparisons
from tests.examination.making import machine
from tests.examination.stations import ascend_files, put, station
from tests.explanation.explaining import explained
from tests.explanation.test_real_logs import LOGS
from tests.perf.report import samples as analyses
from tests.proof.report import samples as proofs
from tests.readiness import samples as readinesses
from tests.report import samples as findings
from torchferry.accuracy.report import REPORTS as COMPARISONS
from torchferry.examination.examine import MachineReport, examine_device, examine_host
from torchferry.examination.report import REPORTS as MACHINES
from torchferry.explanation.report import REPORTS as EXPLANATIONS
from torchferry.migration.adding import Adding, note_report
from torchferry.migration.folder import NAME, MigrationFolder, open_or_make
from torchferry.perf.report import REPORTS as ANALYSES
from torchferry.proof.report import REPORTS as PROOFS
from torchferry.readiness.report import REPORTS as READINESS
from torchferry.report.findings import REPORTS as FINDINGS
from torchferry.report.formats import Options, Reports
from torchferry.vendors.registry import get_vendor


def add(
    folder: MigrationFolder, command: str, reports: Reports[Any] | None = None, content: Any = None
) -> None:
    """A command that has ended, with its report."""
    adding = Adding(folder, command, f"ferry {command} --to ascend main.py")
    with adding.collecting():
        if reports is not None:
            note_report(reports, content, Options())
    assert adding.problem is None, adding.problem


def a_bit_of_everything(place: Path) -> MigrationFolder:
    """Results of all stages."""
    folder = open_or_make(place / "toy" / NAME)
    add(folder, "run")
    add(folder, "scan", FINDINGS, findings.sample_report())
    add(folder, "convert", FINDINGS, findings.sample_report())
    add(folder, "ops", READINESS, readinesses.sample())
    add(folder, "prove", PROOFS, proofs.sample())
    add(folder, "explain", EXPLANATIONS, explained(LOGS["vector core"][1]))
    add(folder, "compare", COMPARISONS, comparisons.faulty())
    add(folder, "analyze", ANALYSES, analyses.bottleneck())
    put(place, ascend_files())
    found = examine_device(station(place))
    add(
        folder,
        "doctor",
        MACHINES,
        MachineReport(found, examine_host(machine(place / "host"), get_vendor("ascend"))),
    )
    return folder

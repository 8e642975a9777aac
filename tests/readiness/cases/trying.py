"""Cases in this process: written to a file, tried by the CPU, run on the device that is simulated here."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from torchferry.readiness.cases.building import CaseRequest, build
from torchferry.readiness.cases.model import Case, CaseOutcome, TrialFacts
from torchferry.readiness.cases.worker import probe, run_case
from torchferry.readiness.cases.writing import FileFrame, Platform, write_case
from torchferry.vendors.model import Vendor


def made(operator: str, *inputs: str, init: str = "", modules: tuple[str, ...] = ()) -> Case:
    return build(CaseRequest(operator, inputs, init=init, modules=modules))


def frame_for(vendor: Vendor, **options: object) -> FileFrame:
    platform = Platform(vendor.name, vendor.plugin, vendor.device_type)
    return replace(FileFrame(platform, (platform,)), **options)  # type: ignore[arg-type]


def facts_of(case: Case, frame: FileFrame) -> TrialFacts:
    """What the CPU finds; a case that it refuses is the test's mistake."""
    with tempfile.TemporaryDirectory() as folder:
        facts = probe(str(write_case(case, TrialFacts(), frame, Path(folder) / "test_probe.py")))
    assert not facts.error, facts.error
    return replace(facts, uninitialised=case.callee.returns_raw_memory)


def outcome_of(case: Case, facts: TrialFacts, frame: FileFrame, do: str = "run") -> CaseOutcome:
    with tempfile.TemporaryDirectory() as folder:
        return run_case(str(write_case(case, facts, frame, Path(folder) / "test_case.py")), do)

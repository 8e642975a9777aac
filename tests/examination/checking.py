"""Runs single checks, for tests."""

from __future__ import annotations

import importlib

from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult


def check(name: str, found: Station) -> dict[str, CheckResult]:
    """What one check says, by its subjects."""
    module = importlib.import_module(f"torchferry.examination.device.checks.{name}")
    return {result.subject: result for result in module.check(found)}


def only(name: str, found: Station) -> CheckResult:
    """The one result of a check."""
    (result,) = check(name, found).values()
    return result

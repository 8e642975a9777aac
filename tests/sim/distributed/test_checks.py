"""Collectives and training on groups of real processes: a test is a module of checks, which one group runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.distributed.group import VENDORS, run_checks

FIRST, *OTHERS = VENDORS
EVERYTHING = pytest.mark.parametrize("checks", ["collectives", "works", "training"])


def passes(vendor: str, checks: str, ranks: int, folder: Path) -> None:
    outcomes = run_checks(vendor, checks, ranks, folder)
    problems = [
        f"{check} on rank {rank}:\n{outcome}"
        for check, by_rank in outcomes.items()
        for rank, outcome in by_rank.items()
        if outcome != "ok"
    ]
    assert outcomes and not problems, "\n".join(problems)


@EVERYTHING
def test_two_ranks(checks: str, tmp_path: Path) -> None:
    passes(FIRST, checks, 2, tmp_path)


@pytest.mark.parametrize("vendor", OTHERS)
def test_other_vendors(vendor: str, tmp_path: Path) -> None:
    passes(vendor, "basics", 2, tmp_path)


@pytest.mark.long
@EVERYTHING
@pytest.mark.parametrize(("vendor", "ranks"), [(FIRST, 4), *((vendor, 2) for vendor in OTHERS)])
def test_everything_everywhere(vendor: str, ranks: int, checks: str, tmp_path: Path) -> None:
    passes(vendor, checks, ranks, tmp_path)

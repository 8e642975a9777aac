"""Collectives and training on groups of real processes: a test is a module of checks; one group runs several."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.sim.distributed.group import VENDORS, Outcomes, run_checks

FIRST, *OTHERS = VENDORS
MODULES = ("collectives", "works", "training")
EVERYTHING = pytest.mark.parametrize("checks", MODULES)
Ask = Callable[[str, int], dict[str, Outcomes]]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """What came of all modules for a vendor, with so many ranks."""

    @cache
    def ask(vendor: str, ranks: int) -> dict[str, Outcomes]:
        return run_checks(vendor, MODULES, ranks, tmp_path_factory.mktemp("group"))

    return ask


def passes(outcomes: Outcomes) -> None:
    problems = [
        f"{check} on rank {rank}:\n{outcome}"
        for check, by_rank in outcomes.items()
        for rank, outcome in by_rank.items()
        if outcome != "ok"
    ]
    assert outcomes and not problems, "\n".join(problems)


@EVERYTHING
def test_two_ranks(checks: str, everything: Ask) -> None:
    passes(everything(FIRST, 2)[checks])


@pytest.mark.parametrize("vendor", OTHERS)
def test_other_vendors(vendor: str, tmp_path: Path) -> None:
    passes(run_checks(vendor, ["basics"], 2, tmp_path)["basics"])


@pytest.mark.long
@EVERYTHING
@pytest.mark.parametrize(("vendor", "ranks"), [(FIRST, 4), *((vendor, 2) for vendor in OTHERS)])
def test_everything_everywhere(vendor: str, ranks: int, checks: str, everything: Ask) -> None:
    passes(everything(vendor, ranks)[checks])

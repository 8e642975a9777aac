"""torch.distributed over the vendor's real plugin: collectives, DDP and FSDP2 between processes, a rank that dies."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.emulate.collectives.processes import PACKAGE, expect, run
from tests.explanation.explaining import cause

MODULES = (
    f"{PACKAGE}.against_gloo",
    f"{PACKAGE}.plugin_checks",
    *(f"tests.sim.distributed.checks.{name}" for name in ("collectives", "works", "training")),
)
Outcomes = list[dict[str, dict[str, str]]]  # of each rank: module -> check -> "ok", or a traceback

pytestmark = pytest.mark.usefixtures("libraries")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Outcomes]:
    """What came of all modules with so many ranks."""

    @cache
    def ask(ranks: int) -> Outcomes:
        folder = tmp_path_factory.mktemp("group")
        commands = [("plugin_rank", str(rank), str(ranks), str(folder), *MODULES) for rank in range(ranks)]
        expect(run(commands), [0] * ranks)
        return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]

    return ask


def passes(outcomes: Outcomes, module: str) -> None:
    problems = [
        f"{check} on rank {rank}:\n{outcome}"
        for rank, modules in enumerate(outcomes)
        for check, outcome in modules[module].items()
        if outcome != "ok"
    ]
    assert outcomes[0][module] and not problems, "\n".join(problems)


@pytest.mark.parametrize("module", MODULES)
def test_two_ranks(everything: Callable[[int], Outcomes], module: str) -> None:
    passes(everything(2), module)


@pytest.mark.long
@pytest.mark.parametrize("module", MODULES)
def test_four_ranks(everything: Callable[[int], Outcomes], module: str) -> None:
    passes(everything(4), module)


def test_a_rank_that_dies(tmp_path: Path) -> None:
    """The other one ends with the toolkit's error: its program fails, or the plugin's watchdog takes it down."""
    first, second = run([("dying_rank", str(rank), "2", str(tmp_path)) for rank in range(2)])
    assert second.code == -signal.SIGKILL, second.printed[-4000:]
    assert first.code != 0 and "never seen: [" not in first.printed, first.printed[-4000:]
    for words in ("rank 0: [2.0, 2.0, 2.0, 2.0]", "EI0002", "Waiting peer rank: 1"):
        assert words in first.printed, first.printed[-4000:]
    assert cause(first.printed) in ("ascend.hccl-timeout", "ascend.hccl-notify"), first.printed[-4000:]

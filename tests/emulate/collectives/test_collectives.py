"""Collectives and messages between processes: values, refusals, and what happens when a process does not do its part."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.emulate.collectives.processes import PACKAGE, expect, run

KILLED = -signal.SIGKILL

# What rank 1 of two does to rank 0, how it ends, and variables for both.
FAILURES: dict[str, tuple[int, Mapping[str, str]]] = {
    "killed_peer": (KILLED, {}),
    "killed_sender": (KILLED, {}),
    "last_words": (KILLED, {}),
    "destroyed_peer": (0, {}),
    "slow_peer": (0, {"HCCL_EXEC_TIMEOUT": "1"}),
    "other_count": (0, {}),
    "other_type": (0, {}),
    "other_operation": (0, {}),
    "other_root": (0, {}),
    "other_split": (0, {}),
    "other_message": (0, {}),
}
# Ranks, and how each ends.
STARTS: dict[str, tuple[int, ...]] = {
    "root_that_has_gone": (KILLED, 0, 0),
    "rank_that_dies_at_the_door": (0, 0),
    "other_number_of_ranks": (0, 0),
    "same_rank_twice": (0, 0),
}


def run_checks(
    libraries: Path,
    folder: Path,
    module: str,
    codes: Sequence[int],
    names: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> None:
    """The same checks in all ranks of one communicator."""
    arguments = [str(len(codes)), f"{PACKAGE}.{module}", *names]
    commands = [("rank", str(libraries), str(folder), str(rank), *arguments) for rank in range(len(codes))]
    expect(run(commands, variables), codes)


def is_left(folder: Path) -> bool:
    """Whether the socket where the ranks have met is still there. Their memory has no name."""
    token = (folder / "root-info").read_bytes()[:32].rstrip(b"\0")
    return token in Path("/proc/net/unix").read_bytes()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_collective(libraries: Path, tmp_path: Path, ranks: int) -> None:
    run_checks(libraries, tmp_path, "checks", [0] * ranks)
    assert not is_left(tmp_path)


def test_what_is_refused(libraries: Path, tmp_path: Path) -> None:
    run_checks(libraries, tmp_path, "arguments", [0])


@pytest.mark.parametrize("name", FAILURES)
def test_a_rank_that_fails(libraries: Path, tmp_path: Path, name: str) -> None:
    code, variables = FAILURES[name]
    run_checks(libraries, tmp_path, "failures", [0, code], [name], variables)
    assert not is_left(tmp_path)


@pytest.mark.parametrize("name", STARTS)
def test_a_meeting_that_fails(libraries: Path, tmp_path: Path, name: str) -> None:
    _run_starts(libraries, tmp_path, name, STARTS[name], {})


def test_a_rank_that_never_comes(libraries: Path, tmp_path: Path) -> None:
    variables = {"TORCHFERRY_EMULATE_CONNECT_TIMEOUT": "1"}
    _run_starts(libraries, tmp_path, "rank_that_never_comes", (0, 0), variables)


def _run_starts(
    libraries: Path, folder: Path, name: str, codes: Sequence[int], variables: Mapping[str, str]
) -> None:
    commands = [
        ("starts", str(libraries), str(folder), str(rank), str(len(codes)), name)
        for rank in range(len(codes))
    ]
    expect(run(commands, variables), codes)

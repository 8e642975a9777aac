"""Runs programs as groups of processes, and leaves none of them behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from torchferry.vendors.registry import get_vendor, vendor_names

ROOT = Path(__file__).resolve().parents[3]
VENDORS = [name for name in vendor_names() if get_vendor(name).plugin]
Outcomes = dict[str, dict[int, str]]  # check -> rank -> "ok", or a traceback
_SECONDS = 150


def environment(**more: str) -> dict[str, str]:
    """This environment, without a group of another test in it."""
    group = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}
    kept = {name: value for name, value in os.environ.items() if name not in group}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}


def run_ranks(commands: Sequence[Sequence[str]]) -> list[str]:
    """What each process printed; a process that fails or hangs fails the test."""
    running = [
        subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for command in commands
    ]
    try:
        printed = [process.communicate(timeout=_SECONDS)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    for process, text in zip(running, printed, strict=True):
        assert process.returncode == 0, text[-4000:]
    return printed


def run_checks(vendor: str, checks: Sequence[str], ranks: int, folder: Path) -> dict[str, Outcomes]:
    """What came of the checks in these modules of `checks`, which one group runs one after the other."""
    package = "tests.sim.distributed"
    modules = {name: f"{package}.checks.{name}" for name in checks}
    program = [sys.executable, "-m", f"{package}.rank", vendor]
    run_ranks([[*program, str(rank), str(ranks), str(folder), *modules.values()] for rank in range(ranks)])
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
    return {
        name: {
            check: {rank: found[rank][module][check] for rank in range(ranks)} for check in found[0][module]
        }
        for name, module in modules.items()
    }

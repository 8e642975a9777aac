"""Runs small programs with the recorder on, on the plain CPU, and reads what it has left."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.forking import run_forked
from torchferry.proof.model import StepRecord
from torchferry.proof.recordings import Recording, find_recordings
from torchferry.proof.settings import ProofSettings


@dataclass(frozen=True)
class Ended:
    """A program that has ended, and what was recorded of it."""

    code: int
    stdout: str
    stderr: str
    recordings: list[Recording]

    @property
    def steps(self) -> list[StepRecord]:
        """Those of the only process."""
        (recording,) = self.recordings
        return list(recording.steps())


def record(folder: Path, program: str, alone: bool = False, **settings: object) -> Ended:
    """Run a program with the recorder on; the settings are those of ProofSettings. `alone`: by a Python of its own."""
    records = folder / "records"
    records.mkdir(parents=True)
    script = folder / "train.py"
    script.write_text(textwrap.dedent(program))
    chosen = ProofSettings(**{"folder": str(records), "steps": None, **settings})  # type: ignore[arg-type]
    environment = {**os.environ, **chosen.environment(), "OMP_NUM_THREADS": "1"}
    if alone:
        command = [sys.executable, str(script)]
        ended = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300
        )
    else:
        ended = run_forked(script, environment, folder)
    return Ended(ended.returncode, ended.stdout, ended.stderr, find_recordings(records))


def plain(folder: Path, program: str, **environment: str) -> str:
    """What the same program prints without the recorder."""
    script = folder / "plain.py"
    script.write_text(textwrap.dedent(program))
    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return ended.stdout

"""The last words of runs that failed, for the reports."""

from __future__ import annotations

from pathlib import Path

from torchferry.prove.crashes import last_words
from torchferry.prove.model import Proof
from torchferry.prove.report.comparison import all_runs


def log_tails(proof: Proof, folder: Path) -> dict[str, str]:
    """By name of the run, what each failed run wrote last: to stderr, or if nothing, to stdout."""
    tails = {}
    for run in all_runs(proof):
        files = (folder / name for name in (run.stderr, run.stdout) if name)
        said = next((words for file in files if file.is_file() and (words := last_words(file))), "")
        if run.exit_code and said:
            tails[run.name] = said
    return tails

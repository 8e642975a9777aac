"""What git knows about a project: the way back that editing in place needs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from torchferry.convert.filesystem import remove_leftovers
from torchferry.convert.project import ProjectOutcome
from torchferry.errors import OutputError


def check_clean(root: Path) -> None:
    """Editing in place needs a git tree without uncommitted changes."""
    folder = root.parent if root.is_file() else root
    remove_leftovers(folder)
    changes = _git(folder, "--no-optional-locks", "status", "--porcelain", "--", os.path.abspath(root))
    if changes.strip():
        raise OutputError(f"{root}: has changes that are not committed; commit them first, or say --force")


def check_tracked(outcome: ProjectOutcome) -> None:
    """Every file to be changed must be in git: an ignored one looks clean, but can't be brought back."""
    root = outcome.root
    folder = root.parent if root.is_file() else root
    listed = _git(folder, "ls-files", "-z", "--recurse-submodules", "--", os.path.abspath(root))
    known = set(listed.split("\0"))
    for item in outcome.outcomes:
        if item.new_data is not None and item.path not in known:
            raise OutputError(
                f"{os.path.join(folder, item.path)}: is not in git, so there is no way back; "
                "add it, --exclude it, or say --force"
            )


def _git(folder: Path, *arguments: str) -> str:
    try:
        result = subprocess.run(["git", *arguments], cwd=folder, capture_output=True)
    except OSError:
        raise OutputError(
            "--in-place needs git to see that nothing is lost; say --force to do without"
        ) from None
    if result.returncode:
        said = os.fsdecode(result.stderr).strip().partition("\n")[0]
        raise OutputError(
            f"{folder}: --in-place needs a git repository ({said}); commit your work first, or say --force"
        )
    return os.fsdecode(result.stdout)

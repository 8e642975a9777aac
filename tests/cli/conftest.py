"""Folders for the command-line tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .commands import TRAIN, make, many_files


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make(tmp_path / "project", train=TRAIN, **{"README.md": "cuda\n", "pkg__util": "x = 1\n"})


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="ferry-test-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def wide_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with so many files that writing its copy can be interrupted."""
    return many_files(tmp_path_factory.mktemp("wide") / "project", folders=30)


@pytest.fixture(scope="session")
def slow_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that takes many seconds to look at, enough for several processes."""
    root = tmp_path_factory.mktemp("slow") / "project"
    root.mkdir()
    for number in range(60):
        (root / f"module{number}.py").write_text("import torch\n" + "x = torch.zeros(1).cuda()\n" * 3000)
    return root

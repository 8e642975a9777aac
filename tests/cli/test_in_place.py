"""ferry convert --in-place: only with a way back, all files or none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .commands import CONVERTED, TRAIN, as_nobody, ferry, make, names, one_line, tree

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(project: Path) -> Path:
    (project / ".gitignore").write_text("ignored.py\n")
    git(project, "init")
    git(project, "add", ".")
    git(project, "commit", "-m", "first")
    return project


def test_needs_git(project: Path) -> None:
    before = tree(project)
    one_line(ferry("convert", project, "--in-place"), "--in-place needs a git repository", "or add --force")
    assert tree(project) == before


def test_a_clean_tree(repository: Path) -> None:
    (repository / "train.py").chmod(0o755)
    git(repository, "commit", "-am", "mode")
    others = tree(repository / "pkg")
    assert ferry("convert", repository, "--in-place").returncode == 0
    assert (repository / "train.py").read_text() == CONVERTED
    assert (repository / "train.py").stat().st_mode & 0o777 == 0o755
    assert tree(repository / "pkg") == others
    assert names(repository) == [".git", ".gitignore", "README.md", "pkg", "train.py"]


def test_a_dirty_tree(repository: Path) -> None:
    (repository / "pkg" / "util.py").write_text("x = 2\n")
    before = tree(repository)
    one_line(ferry("convert", repository, "--in-place"), "has uncommitted changes", "--force")
    assert tree(repository) == before
    assert ferry("convert", repository, "--in-place", "--force").returncode == 0
    assert (repository / "train.py").read_text() == CONVERTED


def test_a_file_that_git_ignores_has_no_way_back(repository: Path) -> None:
    make(repository, ignored=TRAIN)
    before = tree(repository)
    one_line(ferry("convert", repository, "--in-place"), "ignored.py: not in git")
    assert tree(repository) == before
    assert ferry("convert", repository, "--in-place", "--exclude", "ignored.py").returncode == 0
    assert (repository / "ignored.py").read_text() == TRAIN


def test_a_single_file(repository: Path, tmp_path: Path) -> None:
    make(repository, other=TRAIN)
    one_line(
        ferry("convert", repository / "other.py", "--in-place"), "has uncommitted changes; commit them first"
    )
    assert ferry("convert", repository / "train.py", "--in-place").returncode == 0
    assert (repository / "train.py").read_text() == CONVERTED
    assert (repository / "other.py").read_text() == TRAIN
    (tmp_path / "link.py").symlink_to(repository / "other.py")
    assert ferry("convert", tmp_path / "link.py", "--in-place", "--force").returncode == 0
    assert (tmp_path / "link.py").is_symlink()
    assert (repository / "other.py").read_text() == CONVERTED


def test_the_second_time_nothing_changes(repository: Path) -> None:
    assert ferry("convert", repository, "--in-place").returncode == 0
    git(repository, "commit", "-am", "converted")
    before = tree(repository)
    assert ferry("convert", repository, "--in-place").returncode == 0
    assert {name: tree(repository)[name] for name in before if ".git" not in name} == {
        name: before[name] for name in before if ".git" not in name
    }


def test_all_or_none(open_folder: Path) -> None:
    project = make(open_folder / "project", a=TRAIN, closed__b=TRAIN)
    prefix = as_nobody(project)
    (project / "closed").chmod(0o555)
    before = tree(project)
    result = ferry("convert", project, "--in-place", "--force", prefix=prefix)
    one_line(result, "closed/b.py: no permission to write in", "nothing was written")
    assert tree(project) == before


def test_the_owner_stays(open_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root edits the files of others")
    project = make(open_folder / "project", train=TRAIN)
    os.chown(project / "train.py", 65534, 65534)
    assert ferry("convert", project, "--in-place", "--force").returncode == 0
    assert (project / "train.py").stat().st_uid == 65534


def test_diff_shows_what_was_done(repository: Path) -> None:
    result = ferry("convert", repository, "--in-place", "--diff")
    assert "-model.cuda()\n+model.npu()" in result.stdout
    assert (repository / "train.py").read_text() == CONVERTED

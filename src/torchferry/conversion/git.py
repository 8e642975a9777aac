"""What git knows about a project: the way back that editing in place needs.

A repository can name programs in its own settings (a file system monitor, hooks, filters, an ssh command, files that
are included), and a tree that came as an archive brings these settings along. So git never sees them: it is given a
folder of ours as the repository, with a few harmless settings, and only the index, the objects and the commit of the
tree. Where git would look into submodules by itself, each is asked about in the same way.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from torchferry.conversion.project import ProjectOutcome
from torchferry.errors import OutputError
from torchferry.files.aside import remove_leftovers
from torchferry.source.commit import git_folders, head_commit, small_file
from torchferry.text import Text

# Settings that say how files are compared, and can start nothing.
_HARMLESS = re.compile(
    r"(core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|repositoryformatversion)"
    r"|extensions\.objectformat)\n([\w-]{0,20})"
)
# The user's own settings stay, but for those that would start something or look for it in the tree.
_OVERRIDDEN = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.untrackedCache=false",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
)
_CARRIED = ("info/exclude", "info/attributes")  # patterns of the clone, in files of their own
_GITLINK = "160000"
_SECONDS = 600


def check_clean(root: Path) -> None:
    """Editing in place needs a git tree without uncommitted changes."""
    folder = root.parent if root.is_file() else root
    remove_leftovers(folder)
    if not _is_clean(folder, os.path.abspath(root)):
        raise OutputError(
            Text(
                f"{root}: has uncommitted changes; commit them first, or add --force",
                f"{root}：有未提交的更改；请先提交，或加 --force",
            )
        )


def check_tracked(outcome: ProjectOutcome) -> None:
    """Every file to be changed must be in git: an ignored one looks clean, but can't be brought back."""
    root = outcome.root
    folder = root.parent if root.is_file() else root
    known = set(_tracked(folder))
    for item in outcome.outcomes:
        if item.new_data is not None and item.path not in known:
            raise OutputError(
                Text(
                    f"{os.path.join(folder, item.path)}: not in git, so it can't be restored; add it to git, "
                    "--exclude it, or add --force",
                    f"{os.path.join(folder, item.path)}：不在 git 中，无法恢复；请加入 git，用 --exclude 排除，或加 "
                    "--force",
                )
            )


def _is_clean(folder: Path, path: str) -> bool:
    with _repository(folder) as repository:
        status = ("--no-optional-locks", "status", "--porcelain", "--ignore-submodules=all", "--", path)
        if repository.git(*status).strip():
            return False
        submodules = repository.submodules(folder)
    return all(_is_clean(folder / name, str(folder / name)) for name in submodules)


def _tracked(folder: Path, prefix: str = "") -> Iterator[str]:
    """The files that git knows below a folder, those of submodules too."""
    with _repository(folder) as repository:
        yield from (prefix + name for name in repository.git("ls-files", "-z").split("\0"))
        submodules = repository.submodules(folder)
    for name in submodules:
        yield from _tracked(folder / name, f"{prefix}{name}/")


@dataclass(frozen=True)
class _Repository:
    """A folder of ours in the place of a tree's .git."""

    folder: Path  # where git runs
    settings: Path
    top: Path
    index: Path
    objects: Path

    def git(self, *arguments: str) -> str:
        """What git says; one line of error if it fails."""
        variables = {
            "GIT_DIR": self.settings,
            "GIT_WORK_TREE": self.top,
            "GIT_INDEX_FILE": self.index,
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        return _run(self.folder, *arguments, **{name: str(value) for name, value in variables.items()})

    def submodules(self, folder: Path) -> list[str]:
        """The submodules below a folder that are there."""
        listed = self.git("ls-files", "-z", "--stage").split("\0")
        names = [line.partition("\t")[2] for line in listed if line.startswith(_GITLINK)]
        return [name for name in names if os.path.lexists(folder / name / ".git")]


@contextmanager
def _repository(folder: Path) -> Iterator[_Repository]:
    folders = git_folders(folder)
    if folders is None:
        raise OutputError(
            Text(
                f"{folder}: --in-place needs a git repository; commit your work first, or add --force",
                f"{folder}：--in-place 需要 git 仓库；请先提交，或加 --force",
            )
        )
    top, place, common = folders
    commit = head_commit(folders)
    with tempfile.TemporaryDirectory(prefix="torchferry-git-") as private:
        settings = Path(private)
        for name in ("refs", "objects", "info"):
            (settings / name).mkdir()
        (settings / "HEAD").write_text(f"{commit}\n" if commit else "ref: refs/heads/none\n")
        harmless = ""  # what of the tree's own settings can start nothing; included files are not read
        if (common / "config").is_file():
            config = str((common / "config").resolve())
            listed = _run(Path(os.sep), "config", "--file", config, "--no-includes", "--null", "--list")
            for found in filter(None, map(_HARMLESS.fullmatch, listed.split("\0"))):
                section, _, name = found[1].partition(".")
                harmless += f"[{section}]\n\t{name} = {found[3]}\n"
        (settings / "config").write_text(harmless, "utf-8")
        for name in _CARRIED:
            (settings / name).write_bytes(small_file(common / name))
        index = place / "index"
        if os.path.lexists(index) and not index.is_file():
            raise OutputError(
                Text(
                    f"{index}: not a regular file; add --force to proceed without git",
                    f"{index}：不是普通文件；加 --force 可不使用 git",
                )
            )
        yield _Repository(folder, settings, top, index, common / "objects")


def _run(folder: Path, *arguments: str, **variables: str) -> str:
    """Call git with nothing of ours that could lead it elsewhere."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    options = [word for setting in _OVERRIDDEN for word in ("-c", setting)]
    try:
        result = subprocess.run(
            ["git", *options, *arguments],
            cwd=folder,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:  # a pipe in the place of a file, say
        raise OutputError(
            Text(
                f"{folder}: git did not respond; add --force to proceed without git",
                f"{folder}：git 没有响应；加 --force 可不使用 git",
            )
        ) from None
    except OSError:
        raise OutputError(
            Text(
                "--in-place needs git to make sure that nothing is lost; add --force to proceed without git",
                "--in-place 需要 git 以确保不会丢失内容；加 --force 可不使用 git",
            )
        ) from None
    if result.returncode:
        said = os.fsdecode(result.stderr).strip().partition("\n")[0]
        raise OutputError(
            Text(
                f"{folder}: --in-place needs a git repository ({said}); commit your work first, or add --force",
                f"{folder}：--in-place 需要 git 仓库（{said}）；请先提交，或加 --force",
            )
        )
    return os.fsdecode(result.stdout)

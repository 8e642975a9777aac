"""A source tree that was made to do harm: nothing of it is run, nothing outside of it is touched, nothing is hidden."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from .commands import CONVERTED, TRAIN, command, environment, ferry, make, names, one_line
from .test_in_place import git


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home with a key, and a tree beside it that wants it."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("KEY")
    make(home / "tree", train=TRAIN)
    return home


LINKS = {
    ".ferry-aside-aaaaaaaa/replaced": "../../.ssh",
    ".ferry-aside-aaaaaaaa": "../.ssh",
    "out/.ferry-aside-aaaaaaaa/replaced": "../../../.ssh",
    f".ferry-aside-{'a' * 16}/replaced": "../../.ssh",
}


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("options", [("-o", "out"), ("-o", "out", "--force"), ("--in-place",)])
def test_a_tree_cannot_have_a_folder_emptied(home: Path, link: str, options: tuple[str, ...]) -> None:
    (home / "tree" / link).parent.mkdir(parents=True, exist_ok=True)
    (home / "tree" / link).symlink_to(LINKS[link])
    git(home / "tree", "init")
    git(home / "tree", "add", ".")
    git(home / "tree", "commit", "-m", "first")
    ferry("convert", ".", *options, cwd=home / "tree")
    assert names(home / ".ssh") == ["id"]
    assert (home / "tree" / link).is_symlink()
    assert [path for path in home.rglob("id") if not path.parent.is_symlink()] == [home / ".ssh" / "id"]


def test_a_plain_folder_that_looks_like_a_leftover_is_part_of_the_tree(home: Path) -> None:
    make(home / "tree" / ".ferry-aside-aaaaaaaa" / "replaced", conftest=TRAIN)
    assert ferry("convert", home / "tree", "-o", home / "out").returncode == 0
    assert not (home / "tree" / "conftest.py").exists()
    assert (home / "out/.ferry-aside-aaaaaaaa/replaced/conftest.py").read_text() == CONVERTED


MARKS = {
    "findings.json": '{\n  "format": "torchferry-findings",\n  "command": "convert",\n',
    "pyvenv.cfg": "",
}


@pytest.mark.parametrize("mark", MARKS)
def test_folders_that_are_left_out_are_named(home: Path, mark: str) -> None:
    make(home / "tree" / "hidden", evil=TRAIN, **{mark: MARKS[mark]})
    found = json.loads(ferry("scan", home / "tree", "--format", "json").stdout)["findings"]
    (left,) = [item for item in found if item["rule"] == "TF906"]
    assert (
        left["path"] == "hidden"
        and mark in left["title"] + left["why"]
        and mark in left["title_zh"] + left["why_zh"]
    )
    assert "evil" not in json.dumps(found)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(home: Path) -> None:
    for name in ("findings.json", "train.py", "helper.py", "run_distributed_npu.sh", "requirements.txt"):
        (home / "tree" / "sub").mkdir(exist_ok=True)
        os.mkfifo(home / "tree" / "sub" / name)
    os.mkfifo(home / "tree" / "run_distributed_npu.sh")
    options = ("--distributed", "--main", "train.py")
    assert ferry("convert", home / "tree", "-o", home / "out", *options).returncode == 3
    assert (home / "out" / "train.py").read_text().count("npu")


def test_links_that_lead_out_are_named_and_kept(home: Path) -> None:
    links = {
        "absolute": str(home / "tree" / "train.py"),
        "second": "/etc",
        "out": "../.ssh",
        "fine": "train.py",
    }
    for name, to in links.items():
        (home / "tree" / name).symlink_to(to)
    found = json.loads(ferry("scan", home / "tree", "--format", "json").stdout)["findings"]
    said = {item["path"]: item["title"] + item["why"] for item in found if item["rule"] == "TF907"}
    assert sorted(said) == ["absolute", "out"]
    assert said["absolute"].endswith("the original uses. There are 2 such links.")
    assert said["out"].startswith("Link that leads out of the projectIt leads to ../.ssh and was kept")


def test_the_git_file_of_a_submodule_is_not_copied(home: Path) -> None:
    make(home / "tree" / "sub", **{".git": "gitdir: ../.git/modules/sub\n", "train": TRAIN})
    assert ferry("convert", home / "tree", "-o", home / "out").returncode == 0
    assert names(home / "out" / "sub") == ["train.py"]


def test_no_internal_name_is_shown(home: Path) -> None:
    result = ferry("convert", home / "tree", "-o", "/proc/xx")
    one_line(result, "/proc/xx: can't be used")
    assert ".ferry" not in result.stderr


# What git would run, by the setting that names it; each writes a file beside the tree.
def _run_by_git(tree: Path) -> dict[str, str]:
    harm = f"touch {tree.parent}/PWNED; cat"
    return {
        "core.fsmonitor": f"touch {tree.parent}/PWNED; false",
        "filter.x.clean": harm,
        "filter.x.smudge": harm,
        "filter.x.process": harm,
        "core.hooksPath": str(tree / "hooks"),
        "core.sshCommand": harm,
        "core.pager": harm,
        "core.editor": harm,
        "core.askPass": harm,
        "core.gitProxy": harm,
        "diff.external": harm,
        "diff.x.textconv": harm,
        "diff.x.command": harm,
        "credential.helper": f"!{harm}",
        "alias.status": f"!{harm}",
        "alias.ls-files": f"!{harm}",
        "pager.status": harm,
        "gpg.program": harm,
        "uploadpack.packObjectsHook": harm,
        "remote.origin.url": f"ext::sh -c 'touch {tree.parent}/PWNED'",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
        "status.submoduleSummary": "true",
    }


def _rig(folder: Path, outside: Path, *, included: bool) -> None:
    """Give a repository every setting by which git runs something, in its own file or in an included one."""
    file = ("--file", str(outside / "included")) if included else ()
    for name, value in _run_by_git(folder).items():
        git(folder, "config", *file, name, value)
    if included:
        git(folder, "config", "include.path", str(outside / "included"))
    (folder / "hooks").mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "query-watchman", "pre-commit"):
        for hooks in (folder / "hooks", folder / ".git" / "hooks"):
            hooks.mkdir(exist_ok=True)
            (hooks / name).write_text(f"#!/bin/sh\ntouch {folder.parent}/PWNED\n")
            (hooks / name).chmod(0o755)


@pytest.mark.parametrize("included", [False, True])
def test_git_runs_nothing_of_the_tree(home: Path, included: bool) -> None:
    tree_ = home / "tree"
    make(tree_, **{".gitattributes": "*.py filter=x diff=x\n", ".gitignore": "hooks\nincluded\n"})
    git(tree_, "init")
    git(tree_, "add", ".")
    git(tree_, "commit", "-m", "first")
    _rig(tree_, home, included=included)
    os.utime(tree_ / "train.py", (1, 1))  # so that git has to look at the content
    assert ferry("convert", tree_, "--in-place").returncode == 0
    assert (tree_ / "train.py").read_text() == CONVERTED
    make(tree_, other=TRAIN)
    one_line(ferry("convert", tree_, "--in-place"), "has uncommitted changes; commit them first")
    for options in (("scan",), ("convert", "--diff"), ("convert", "-o", home / "out")):
        ferry(options[0], tree_, *options[1:])
    assert not list(home.rglob("PWNED*"))


def test_git_runs_nothing_of_a_submodule(home: Path) -> None:
    tree_, other = home / "tree", make(home / "other", lib=TRAIN)
    for folder in (other, tree_):
        git(folder, "init")
        git(folder, "add", ".")
        git(folder, "commit", "-m", "first")
    git(tree_, "-c", "protocol.file.allow=always", "submodule", "add", str(other), "sub")
    git(tree_, "commit", "-am", "second")
    config = Path(".git/modules/sub/config")
    with (tree_ / config).open("a") as file:
        file.write(f'[core]\n\tfsmonitor = "touch {home}/PWNED; false"\n')
    make(tree_, sub__lib=f"{TRAIN}# mine\n")
    one_line(ferry("convert", tree_, "--in-place"), "has uncommitted changes; commit them first")
    git(tree_ / "sub", "-c", "core.fsmonitor=false", "checkout", ".")
    assert ferry("convert", tree_, "--in-place").returncode == 0
    assert (tree_ / "sub" / "lib.py").read_text() == CONVERTED
    assert not (home / "PWNED").exists()


def test_work_trees_and_packed_references(home: Path) -> None:
    tree_ = home / "tree"
    git(tree_, "init")
    git(tree_, "add", ".")
    git(tree_, "commit", "-m", "first")
    git(tree_, "worktree", "add", str(home / "second"))
    git(tree_, "pack-refs", "--all")
    (tree_ / ".git" / "info" / "exclude").write_text("notes.txt\n")
    for folder in (home / "second", tree_):
        (folder / "notes.txt").write_text("x")
        assert ferry("convert", folder, "--in-place").returncode == 0
        assert (folder / "train.py").read_text() == CONVERTED
        one_line(ferry("convert", folder, "--in-place"), "has uncommitted changes; commit them first")


WATCH = """
import json, os, sys
LOG = os.environ["CHILDREN"]
STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty", "os.startfile", "pty.spawn")
def watch(event, arguments):
    if event in STARTS:
        with open(LOG, "a") as log:
            log.write(json.dumps([event, [str(each) for each in arguments[:2]]]) + "\\n")
sys.addaudithook(watch)
"""


def children(tmp_path: Path, *arguments: object, cwd: Path) -> list[list[str]]:
    """Every process that a command starts: what it is told to run."""
    (tmp_path / "watch").mkdir(exist_ok=True)
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    log = tmp_path / "children"
    log.write_text("")
    settings = environment(PYTHONPATH=str(tmp_path / "watch"), CHILDREN=str(log))
    subprocess.run(
        command("ferry", *arguments),
        cwd=cwd,
        env=settings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture
def rigged(home: Path) -> Path:
    """A tree with modules that Python would find first, a log, a trace, a checkpoint, and git's settings."""
    evil = f"open({str(home / 'PWNED')!r}, 'w')\n"
    shadows = dict.fromkeys(
        ("json", "torch", "numpy", "rich", "sitecustomize", "yaml", "conftest", "setup"), evil
    )
    tree_ = make(home / "tree", **shadows, **{"a.log": "RuntimeError: NPU out of memory\n"})
    (tree_ / "t.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}'
    )
    (tree_ / "c.pth").write_bytes(b"cos\nsystem\n(S'touch PWNED'\ntR.")
    git(tree_, "init")
    git(tree_, "add", ".")
    git(tree_, "commit", "-m", "first")
    _rig(tree_, home, included=False)
    return tree_


# command -> the programs that it may start: none, but git where a file is edited in place, without the tree's settings
STARTED = {
    ("scan", ".", "--to", "ascend", "-j", "1"): set(),
    ("scan", ".", "--to", "ascend", "--format", "json", "-o", "f.json"): set(),
    ("convert", ".", "--to", "ascend", "-o", "out"): set(),
    ("convert", ".", "--to", "ascend", "--diff"): set(),
    ("convert", ".", "--to", "ascend", "--in-place"): {"git"},
    ("explain", "a.log", "--to", "ascend"): set(),
    ("analyze", "t.json"): set(),
    ("checkpoint", "info", "c.pth"): set(),
    ("report", "f.json"): set(),
}


def test_what_commands_start(rigged: Path, tmp_path: Path) -> None:
    """Several workers (-j) are forks of the command itself; they are started for projects of 3 MB and more."""
    for arguments, allowed in STARTED.items():
        started = children(tmp_path, *arguments, cwd=rigged)
        assert {Path(what[0]).name for _, what in started} == allowed, arguments
        git_calls = [what[1] for _, what in started]
        assert all("core.fsmonitor=false" in call for call in git_calls)
    assert not list(rigged.parent.rglob("PWNED*"))

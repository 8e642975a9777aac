"""What is written aside: whole or absent, never through a link; leftovers of killed runs go, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from torchferry.files import aside, journal, user_folder
from torchferry.files.aside import (
    file_aside,
    folder_aside,
    is_being_made,
    remove_leftovers,
    temporary_folder,
    write_whole,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(user_folder.VARIABLE, str(cache))
    return cache


def killed(code: str, *arguments: Path) -> None:
    """Run a few lines in a process that ends them by kill -9."""
    lines = [
        "import os, signal, sys",
        "from pathlib import Path",
        "from torchferry.files.aside import *",
        "die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)",
        code,
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines), *map(str, arguments)])
    assert done.returncode == -signal.SIGKILL


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "a.txt"
    write_whole(place, b"old")
    place.chmod(0o600)
    with pytest.raises(ValueError, match="broken off"), file_aside(place) as made:
        made.stream.write(b"new")
        raise ValueError("broken off")
    assert os.listdir(place.parent) == ["a.txt"] and place.read_bytes() == b"old"
    write_whole(place, [b"ne", b"w"])
    assert os.listdir(place.parent) == ["a.txt"] and place.read_bytes() == b"new"
    assert place.stat().st_mode & 0o777 == 0o600


def test_no_link_is_written_through(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "report.json"
    victim.write_text("mine")
    for name in (f".report.json.{os.getpid()}.tmp", "report.json"):
        (tmp_path / name).symlink_to(victim)
    write_whole(place, b"new")
    assert victim.read_text() == "mine"
    assert place.read_bytes() == b"new" and not place.is_symlink()


def test_a_pipe_is_written_to_as_it_is() -> None:
    reading, writing = os.pipe()
    write_whole(Path(f"/proc/self/fd/{writing}"), b"through")
    assert os.read(reading, 100) == b"through"
    os.close(reading)
    os.close(writing)


def test_what_a_killed_run_has_left_goes_with_the_next(tmp_path: Path) -> None:
    killed(
        "with file_aside(Path(sys.argv[1])) as made: made.stream.write(b'x' * 99999); die()", tmp_path / "a"
    )
    killed("with folder_aside(Path(sys.argv[1])) as made: (made.path / 'new').mkdir(); die()", tmp_path)
    left = os.listdir(tmp_path)
    assert len(left) == 2 and all(is_being_made(str(tmp_path / name)) for name in left)
    write_whole(tmp_path / "a", b"new")
    assert os.listdir(tmp_path) == ["a"]


def test_a_temporary_folder_of_a_killed_run_goes_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    killed("with temporary_folder() as folder: (Path(folder) / 'a').touch(); die()")
    assert len(os.listdir(tmp_path)) == 1
    with temporary_folder() as folder:
        assert os.listdir(tmp_path) == [Path(folder).name]
    assert os.listdir(tmp_path) == []


def test_what_nobody_has_recorded_stays(tmp_path: Path) -> None:
    """It came with a tree, or a killed run of someone else has left it."""
    for name in (".ferry-aside-aaaaaaaa", ".ferry-0123456789abcdef", ".a.123.tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("x")
        assert not is_being_made(str(tmp_path / name))
    remove_leftovers(tmp_path)
    assert len(list(tmp_path.glob(".*/mine"))) == 3


def test_a_name_that_something_else_has_taken_since_stays(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine").write_text("x")
    place = tmp_path / "place"
    place.mkdir()
    killed("with folder_aside(Path(sys.argv[1])) as made: die()", place)
    (left,) = place.iterdir()
    left.rmdir()
    left.symlink_to(victim)
    remove_leftovers(place)
    assert (victim / "mine").exists() and left.is_symlink()
    left.unlink()
    (left / "replaced").mkdir(parents=True)
    remove_leftovers(place)
    assert left.is_dir()


def test_what_a_living_run_writes_stays(tmp_path: Path) -> None:
    with folder_aside(tmp_path) as made:
        remove_leftovers(tmp_path)
        assert made.path.is_dir() and is_being_made(str(made.path))
    assert os.listdir(tmp_path) == []


_REPLACING = """
out = Path(sys.argv[1])
rename = os.rename
os.rename = lambda *names: (rename(*names), die())
with folder_aside(out.parent) as made:
    (made.path / "new").mkdir()
    made.replace(made.path / "new", out, lambda _old: True)
"""


def test_a_folder_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_whole(out / "a", b"old")
    killed(_REPLACING, out)
    assert not out.exists()
    remove_leftovers(tmp_path)
    assert (out / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["out"]


def test_it_does_not_come_back_through_a_link(tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    write_whole(out / "a", b"old")
    write_whole(victim / "out" / "key", b"secret")
    killed(_REPLACING, out)
    (left,) = tmp_path.glob(".ferry-*")
    (left / "replaced").rename(tmp_path / "elsewhere")
    (left / "replaced").symlink_to(victim)
    remove_leftovers(tmp_path)
    assert (victim / "out" / "key").read_bytes() == b"secret" and not out.exists()


def test_a_folder_that_is_not_ours_is_kept_beside(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for expected in ("out.1", "out.2"):
        write_whole(out / "mine", b"x")
        with folder_aside(tmp_path) as made:
            write_whole(made.path / "new" / "a", b"new")
            assert made.replace(made.path / "new", out, lambda _old: False) == tmp_path / expected
        assert os.listdir(out) == ["a"]
    assert sorted(os.listdir(tmp_path)) == ["out", "out.1", "out.2"]


def test_without_a_place_for_records_all_works_but_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_folder", lambda make=False: None)
    write_whole(tmp_path / "a", b"new")
    with folder_aside(tmp_path):
        pass
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == ["a"]


def test_records_are_believed_only_in_a_folder_of_this_user_alone(own_cache: Path, tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"")
    assert journal._folder() == own_cache / "made"
    (own_cache / "made").chmod(0o777)
    assert journal._folder() != own_cache / "made"


def test_damaged_records_do_no_harm(own_cache: Path, tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"")
    key = journal._key(tmp_path)
    lines = [
        b"", b"\xff\xfe", b"{", b"[]", b'{"name": "../a"}', b'{"name": "a", "identity": [1, 2]}', b'{"name": "a"}',
        b'{"name": "a", "identity": "x", "replaced": 3}',
    ]  # fmt: skip
    (tmp_path / "a").write_bytes(b"mine")
    for number, line in enumerate(lines):
        (own_cache / "made" / f"{key}-{number:016x}").write_bytes(line)
    remove_leftovers(tmp_path)
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert os.listdir(own_cache / "made") == []


def test_signals_wait_while_a_folder_is_put_in_place() -> None:
    with aside.uninterrupted():
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])

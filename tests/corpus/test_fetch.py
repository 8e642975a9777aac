"""The fetcher: pins are complete, archives are unpacked safely. No network."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import fetch
import pytest


def archive(folder: Path, names: list[str]) -> Path:
    """A tar archive with the named files."""
    path = folder / "a-1.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"x\n"))
        link = tarfile.TarInfo("a-1/link")
        link.type = tarfile.SYMTYPE
        link.linkname = "/etc"
        tar.addfile(link)
    return path


def test_every_project_is_pinned() -> None:
    found = fetch.projects()
    assert 12 <= len(found) == len({project.name for project in found})
    assert all(project.version and len(project.sha256) == 64 for project in found)


def test_unknown_name() -> None:
    with pytest.raises(fetch.FetchError, match="nonesuch"):
        fetch.projects(["nonesuch"])


def test_unpack_drops_the_top_folder_and_links(tmp_path: Path) -> None:
    out = tmp_path / "out"
    fetch.unpack(archive(tmp_path, ["a-1/setup.py", "a-1/a/b.py"]), out)
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == ["a/b.py", "setup.py"]
    assert not (out / "link").exists()


@pytest.mark.parametrize("name", ["a-1/../../evil.py", "/a-1/evil.py", "a-1/c:/evil.py"])
def test_unpack_refuses_to_leave_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(fetch.FetchError, match="unsafe path"):
        fetch.unpack(archive(tmp_path, [name]), tmp_path / "out")

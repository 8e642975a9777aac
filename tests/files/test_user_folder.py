"""Places from which libraries are loaded and records are believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchferry.building import cache as build_cache
from torchferry.files.user_folder import VARIABLE, is_private, is_trusted


@pytest.mark.parametrize(
    ("mode", "trusted", "private"),
    [
        (0o700, True, True),
        (0o755, True, True),
        (0o775, True, False),
        (0o777, False, False),
        (0o1777, False, False),
    ],
)
def test_who_may_write_there(tmp_path: Path, mode: int, trusted: bool, private: bool) -> None:
    tmp_path.chmod(mode)
    assert (is_trusted(tmp_path), is_private(tmp_path)) == (trusted, private)
    tmp_path.chmod(0o700)


def test_whose_it_is(tmp_path: Path) -> None:
    assert is_trusted(Path("/"))  # root's
    assert not is_trusted(tmp_path / "missing")
    (tmp_path / "link").symlink_to(tmp_path)
    assert not is_private(tmp_path / "link")
    if os.geteuid() == 0:
        (tmp_path / "other").mkdir()
        os.chown(tmp_path / "other", 65534, 65534)
        assert not is_trusted(tmp_path / "other")


def test_no_library_is_loaded_from_a_cache_that_everybody_can_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(build_cache, "private_temporary_folder", lambda: tmp_path / "instead")
    library = tmp_path / "cache" / "sim" / "key" / "lib.so"
    library.parent.mkdir(parents=True)
    library.touch()
    assert (
        build_cache.is_safe_to_load(library)
        and build_cache.writable_folder("sim") == tmp_path / "cache" / "sim"
    )
    for place in (library, library.parent, tmp_path / "cache" / "sim", tmp_path / "cache"):
        before = place.stat().st_mode
        place.chmod(0o777)
        assert not build_cache.is_safe_to_load(library)
        place.chmod(before & 0o7755)
    (tmp_path / "cache").chmod(0o777)
    assert build_cache.writable_folder("sim") == tmp_path / "instead"
    assert "others can write there, or it belongs to another user" in capsys.readouterr().err

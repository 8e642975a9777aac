"""The plugin: which wheel is taken, where it is kept, that it is there whole or not at all, and what is said otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.commands import make
from tests.emulate.wheels import TAG, TORCH, wheel
from torchferry.emulate import plugins
from torchferry.errors import FerryError, InputError, RunError
from torchferry.files.user_folder import VARIABLE as CACHE_VARIABLE
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

ASCEND = get_vendor("ascend")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    return tmp_path / "cache" / plugins.CACHE


def set_up(file: Path | None) -> plugins.Plugin:
    said: list[Text] = []
    return plugins.set_up(ASCEND, file, said.append)


def kept(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if not path.name.endswith(".lock")]


@pytest.mark.parametrize("version", [TORCH, f"{TORCH}.post3", f"{TORCH}rc1"])
def test_a_wheel_that_fits_is_kept_beside_the_environment(tmp_path: Path, cache: Path, version: str) -> None:
    assert plugins.found(ASCEND) is None
    made = set_up(wheel(tmp_path, version))
    assert made == plugins.found(ASCEND) == plugins.needed(ASCEND)
    assert (made.version, made.folder.parent, made.is_kept) == (version, cache, True)
    assert kept(cache) == [made.folder.name]
    assert str(made.folder) not in sys.path


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"version": "1.2.3"}, f"made for another PyTorch than the installed torch {TORCH}"),
        ({"version": f"{TORCH}1"}, "made for another PyTorch"),
        ({"version": f"{TORCH}.4"}, "made for another PyTorch"),
        (
            {"tag": "cp27-cp27mu-manylinux2014_x86_64"},
            "made for cp27-cp27mu-manylinux2014_x86_64, but this is cp3",
        ),
        (
            {"tag": TAG.replace("manylinux", "macosx")},
            f"made for {TAG.replace('manylinux', 'macosx')}, but this is cp3",
        ),
        ({"tag": TAG.rpartition("_")[0] + "_riscv"}, "riscv"),
        ({"module": "torch_mlu"}, "not a wheel of torch_npu"),
        ({"metadata": False}, "not a wheel of torch_npu"),
        ({"files": {"../evil.py": ""}}, "'../evil.py'"),
        ({"files": {"/etc/evil.py": ""}}, "'/etc/evil.py'"),
    ],
)
def test_a_wheel_that_does_not_fit_is_refused(
    tmp_path: Path, cache: Path, wrong: dict[str, object], words: str
) -> None:
    file = wheel(tmp_path / "given", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        set_up(file)
    message = str(caught.value)
    assert words in message
    assert f"torch_npu-{TORCH}" in message.rpartition("; give ")[2]
    assert "\n" not in message
    assert kept(cache) == []
    assert not list(tmp_path.rglob("evil.py"))


def test_what_is_no_wheel_is_refused(tmp_path: Path, cache: Path) -> None:
    whole = wheel(tmp_path).read_bytes()
    files = {"cut.whl": whole[:-40], "text.whl": b"torch", "empty.whl": b""}
    make(tmp_path / "bad", **files)
    for name in files:
        with pytest.raises(InputError, match=r"not a wheel, or a damaged one"):
            set_up(tmp_path / "bad" / name)
    with pytest.raises(InputError, match="no such wheel"):
        set_up(tmp_path / "nowhere.whl")
    with pytest.raises(InputError, match="is a folder"):
        set_up(tmp_path)
    assert kept(cache) == []


def test_damage_inside_of_a_wheel_is_seen_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    file = wheel(tmp_path, files={"torch_npu/big.py": "x = 1\n" * 100})
    data = file.read_bytes()
    file.write_bytes(data.replace(b"x = 1\nx = 1\n", b"x = 2\nx = 2\n", 1))
    with pytest.raises(InputError, match="damaged"):
        set_up(file)
    assert kept(cache) == []


def test_an_interruption_leaves_what_was_there(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = set_up(wheel(tmp_path / "1"))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plugins, "_check_size", interrupted)
    with pytest.raises(KeyboardInterrupt):
        set_up(wheel(tmp_path / "2", f"{TORCH}.post1"))
    assert plugins.found(ASCEND) == first
    assert kept(cache) == [first.folder.name]


def test_a_wheel_takes_the_place_of_what_is_there_and_nothing_is_fetched_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(wheel(tmp_path / "1"))
    assert set_up(wheel(tmp_path / "2", f"{TORCH}.post1")).version == f"{TORCH}.post1"
    monkeypatch.setattr(plugins, "fetch", None)
    assert set_up(None).version == f"{TORCH}.post1"


def test_what_is_fetched_is_the_newest_for_this_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    for version in (TORCH, f"{TORCH}.post2", f"{TORCH}.post1", "9.9.9"):
        wheel(index, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert set_up(None).version == f"{TORCH}.post2"


def test_without_a_network_it_says_what_to_bring(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(RunError) as caught:
        set_up(None)
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "torch-npu can't be downloaded",
        f"'torch-npu=={TORCH}.*'",
        f"torch_npu-{TORCH}*-{plugins.python_tag()}-{plugins.python_tag()}-manylinux*",
        "ferry emulate setup --to ascend --wheel FILE",
    ):
        assert part in message
    assert kept(cache) == []


def test_without_pip_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=r"has no pip.*--wheel FILE"):
        set_up(None)


def unpacked(folder: Path, version: str) -> Path:
    info = folder / f"torch_npu-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: torch_npu\nVersion: {version}\n")
    (folder / "torch_npu").mkdir()
    (folder / "torch_npu" / "__init__.py").write_text("raise ImportError\n")
    return folder


def test_a_folder_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(wheel(tmp_path))
    folder = unpacked(tmp_path / "own", f"{TORCH}.post9")
    monkeypatch.setenv(plugins.VARIABLE, str(folder))
    assert plugins.found(ASCEND) == plugins.Plugin(folder, f"{TORCH}.post9")
    monkeypatch.setenv(plugins.VARIABLE, str(unpacked(tmp_path / "old", "2.1.0")))
    with pytest.raises(RunError, match=r"made for torch 2\.1\.0"):
        plugins.found(ASCEND)
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(RunError, match="holds no torch_npu"):
        plugins.found(ASCEND)


@pytest.mark.parametrize(("version", "fits"), [(TORCH, True), ("2.1.0", False)])
def test_one_that_is_installed_is_used_if_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, fits: bool
) -> None:
    site = unpacked(tmp_path / "site", version)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    assert plugins.found(ASCEND) == (plugins.Plugin(site, version) if fits else None)


def test_one_that_others_could_have_put_there_is_not_loaded(tmp_path: Path) -> None:
    made = set_up(wheel(tmp_path))
    made.folder.chmod(0o777)
    assert plugins.found(ASCEND) is None


def test_removing_takes_away_all_that_is_kept_and_nothing_else(tmp_path: Path, cache: Path) -> None:
    assert plugins.remove(ASCEND) == []
    made = set_up(wheel(tmp_path))
    make(cache / "torch_mlu-2.1.0", module="x = 1\n")
    assert plugins.remove(ASCEND) == [made.folder]
    assert plugins.found(ASCEND) is None
    assert kept(cache) == ["torch_mlu-2.1.0"]


@pytest.mark.parametrize("name", ["cambricon", "intel"])
def test_a_vendor_without_an_emulation_is_refused(name: str) -> None:
    with pytest.raises(FerryError, match=f"{name}: no emulation"):
        plugins.needed(get_vendor(name))


def test_a_plugin_that_is_missing_is_named_with_the_command() -> None:
    with pytest.raises(RunError, match="ferry emulate setup --to ascend"):
        plugins.needed(ASCEND)


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.13.0+cpu", "2.13.0"), ("2.7.1.post2", "2.7.1"), ("2.13.0rc1", "2.13.0"), ("2.6", "2.6.0")],
)
def test_the_release_of_a_version(version: str, release: str) -> None:
    assert plugins.release_of(version) == release

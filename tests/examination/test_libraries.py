"""What the loader will find: libraries, those that they need in turn, versions of symbols, and two toolkits at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.examination.checking import check, only
from tests.examination.stations import (
    ASCEND_VARIABLES,
    CANN,
    ascend_files,
    put,
    shared_object,
    station,
)
from torchferry.examination.device.elf import read_shared_object, symbol_names
from torchferry.report.checks import Status

DRIVER = "usr/local/Ascend/driver/lib64/driver"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    put(tmp_path, ascend_files())
    return tmp_path


def test_libraries_that_the_loader_does_not_find(server: Path) -> None:
    variables = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": ""}
    result = only("libraries", station(server, environment=variables))
    assert result.status is Status.BLOCKS
    assert result.found.en.startswith("not found: libhccl.so")
    assert result.commands[0].line.startswith(f"export LD_LIBRARY_PATH=/{CANN}/lib64")
    put(server, {"etc/ld.so.conf.d/cann.conf": f"/{CANN}/lib64\n"})
    assert only("libraries", station(server, environment=variables)).status is Status.FINE


def test_libraries_for_another_processor(server: Path) -> None:
    put(server, {f"{CANN}/lib64/libhccl.so": shared_object(machine=183)})
    result = only("libraries", station(server))
    assert (result.status, result.found.en) == (Status.BLOCKS, "not found: libhccl.so")
    assert result.why.en == f"/{CANN}/lib64/libhccl.so is built for another processor"


def test_heads_of_shared_objects(tmp_path: Path) -> None:
    import _ctypes

    real = read_shared_object(Path(_ctypes.__file__))
    assert real is not None and "libc.so.6" in real.needed
    for name, data in {
        "text": b"INPUT ( libm.so.6 )" * 8,
        "cut": shared_object(["liba.so"])[:100],
        "empty": b"",
        "huge": shared_object(["liba.so"])[:32] + b"\xff" * 64,
    }.items():
        (tmp_path / name).write_bytes(data)
        assert read_shared_object(tmp_path / name) is None, name
    (tmp_path / "good").write_bytes(shared_object(["liba.so"], "$ORIGIN:/opt/b"))
    good = read_shared_object(tmp_path / "good")
    assert good is not None and (good.needed, good.search) == (("liba.so",), ("$ORIGIN", "/opt/b"))


def test_a_library_that_only_a_library_needs(server: Path) -> None:
    put(server, {f"{CANN}/lib64/libascendcl.so": shared_object(["libruntime.so"])})
    put(server, {f"{CANN}/lib64/libruntime.so": shared_object(["libascend_hal.so", "libascendcl.so"])})
    result = only("libraries", station(server))
    assert (result.status, result.found.en) == (
        Status.BLOCKS,
        f"not found: libascend_hal.so (for /{CANN}/lib64/libruntime.so)",
    )
    put(server, {f"{DRIVER}/libascend_hal.so": shared_object()})
    assert only("libraries", station(server)).commands[0].line.startswith(f"export LD_LIBRARY_PATH=/{DRIVER}")
    variables = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": f"/{CANN}/lib64:/{DRIVER}"}
    assert only("libraries", station(server, environment=variables)).status is Status.FINE


def test_a_library_that_is_too_old(server: Path) -> None:
    conda, system = "opt/conda/lib/libstdc++.so.6", "usr/lib/libstdc++.so.6"
    put(
        server,
        {
            "site/torch_npu/lib/libtorch_npu.so": shared_object(
                ["libstdc++.so.6"], wants=[("libstdc++.so.6", "GLIBCXX_3.4.29")]
            ),
            system: shared_object(has=["GLIBCXX_3.4.28", "GLIBCXX_3.4.29"]),
            conda: shared_object(has=["GLIBCXX_3.4.28"]),
        },
    )
    assert only("libraries", station(server)).status is Status.FINE
    first = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": f"/{CANN}/lib64:/opt/conda/lib"}
    result = check("libraries", station(server, environment=first))["libstdc++.so.6"]
    assert (result.status, result.found.en) == (Status.BLOCKS, f"/{conda} lacks GLIBCXX_3.4.29")
    # Python of conda names its own folder for all that it loads
    put(server, {"opt/conda/bin/python": shared_object(rpath="$ORIGIN/../lib")})
    inherited = station(server, interpreter=server / "opt/conda/bin/python")
    assert check("libraries", inherited)["libstdc++.so.6"].status is Status.BLOCKS


def test_libraries_of_another_toolkit(server: Path) -> None:
    put(server, {"opt/cann-8.1/lib64/libhccl.so": shared_object()})
    variables = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": f"/opt/cann-8.1/lib64:/{CANN}/lib64"}
    result = check("libraries", station(server, environment=variables))["two toolkits"]
    assert (result.status, result.found.en) == (Status.DOUBT, "libhccl.so is found in /opt/cann-8.1/lib64")
    # another name for the same folder is no second toolkit
    (server / "opt/same").symlink_to(server / CANN / "lib64")
    same = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": f"/opt/same:/{CANN}/lib64"}
    assert "two toolkits" not in check("libraries", station(server, environment=same))


@pytest.mark.parametrize(
    ("torch", "plugin", "is_wrong"), [("1", "0", True), ("0", "1", True), ("1", "1", False)]
)
def test_strings_of_another_form(server: Path, torch: str, plugin: str, is_wrong: bool) -> None:
    names = {
        "0": ["_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"],
        "1": ["_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"],
    }
    put(server, {"site/torch/lib/libc10.so": shared_object(names=names[torch])})
    put(server, {"site/torch_npu/lib/libtorch_npu.so": shared_object(names=names[plugin])})
    results = check("abi", station(server))
    assert [result.status for result in results.values()] == ([Status.BLOCKS] if is_wrong else [])


def test_a_path_of_many_folders_loops_and_closed_ones(server: Path) -> None:
    (server / "opt").mkdir()
    (server / "opt/loop").symlink_to(server / "opt/loop")
    (server / "opt/closed").mkdir(mode=0)
    odd = ["/opt/loop", "/opt/closed", "relative", "", "/a\nb", "/" + "x" * 5000, "/opt/\udcff"]
    many = ":".join([*odd, *(f"/opt/{number}" for number in range(500)), f"/{CANN}/lib64"] * 2)
    variables = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": many}
    assert only("libraries", station(server, environment=variables)).status is Status.FINE


def test_a_toolkit_that_this_user_may_not_see(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As /root/Ascend for anybody but root: Path.is_dir would raise."""

    def closed(path: str | os.PathLike[str], **options: object) -> os.stat_result:
        if "/root/" in os.fspath(path):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path, **options)  # type: ignore[arg-type]

    real = os.stat
    monkeypatch.setattr(os, "stat", closed)
    variables = {**ASCEND_VARIABLES, "ASCEND_HOME_PATH": "/root/Ascend/cann"}
    results = check("environment", station(server, environment=variables))
    assert results["ASCEND_HOME_PATH"].found.en == "/root/Ascend/cann: no such folder"


def test_symbols_and_versions_of_real_files() -> None:
    import _ctypes

    file = Path(_ctypes.__file__)
    real = read_shared_object(file)
    assert real is not None and any(version.startswith("GLIBC_") for _, version in real.wants)
    assert b"\0PyInit__ctypes\0" in symbol_names(file)

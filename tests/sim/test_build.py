"""Building the simulated device's library: once, shared between processes, never half-made, with clear errors."""

from __future__ import annotations

import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchferry.building import build as building
from torchferry.building import cache as build_cache
from torchferry.building.build import BuildState, ProgressLine, Stage, silent
from torchferry.building.toolchain import (
    TorchInstallation,
    compile_flags,
    find_compiler,
    find_torch,
    torch_in,
)
from torchferry.errors import BuildError
from torchferry.operators.native_functions import TABLE, load_operator_facts
from torchferry.report import progress
from torchferry.sim.build import LIBRARY, DeviceBuild, is_complete

PLAIN = "int answer{number}() {{ return {number}; }}\n"
SLOW = "#!/bin/sh\necho $$ >> {pids}\nsleep 30\n"
TWO_WEEKS = 14 * 24 * 3600


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "csrc"
    folder.mkdir()
    for number in range(3):
        (folder / f"part{number}.cpp").write_text(PLAIN.format(number=number))
    (folder / "common.h").write_text("#pragma once\n")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def build(sources: Path, cache: Path) -> Path:
    return DeviceBuild(find_torch(), sources).in_cache(cache, silent)


def objects(cache: Path) -> dict[str, int]:
    return {path.name.partition("-")[0]: path.stat().st_ino for path in cache.glob("*-objects/*.o")}


def test_an_operator_from_the_library_runs_in_torch(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "csrc"
    folder.mkdir()
    (folder / "twice.cpp").write_text(
        "#include <ATen/ATen.h>\n#include <torch/library.h>\n"
        "at::Tensor twice(const at::Tensor& x) { return x + x; }\n"
        'TORCH_LIBRARY(torchferry_test, m) { m.def("twice", twice); }\n'
    )
    library = build(folder, cache)
    code = f"import torch; torch.ops.load_library({str(library)!r}); print(torch.ops.torchferry_test.twice(torch.ones(2)).tolist())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[2.0, 2.0]\n"
    names = subprocess.check_output(["readelf", "-d", str(library)], text=True)
    assert "RPATH" not in names
    assert "RUNPATH" not in names
    assert str(tmp_path).encode() not in library.read_bytes()


def test_the_facts_of_torch_are_those_it_tells_itself() -> None:
    code = "import torch, json; print(json.dumps([torch.__version__, torch.compiled_with_cxx11_abi(), torch.__path__[0]]))"
    version, cxx11_abi, folder = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    found = find_torch()
    assert (found.version, found.cxx11_abi, str(found.folder)) == (version, cxx11_abi, folder)


def test_the_operator_table_lies_beside_the_library(sources: Path, cache: Path) -> None:
    facts = load_operator_facts(build(sources, cache).with_name(TABLE))
    assert facts["add.Tensor"].structured_delegate == "add.out"
    assert "CPU" in facts["add.out"].kernels


def test_a_second_call_compiles_nothing(sources: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(sources, cache)
    monkeypatch.setenv("CXX", "/bin/false")
    assert build(sources, cache) == first


def test_a_changed_file_is_the_only_one_compiled_again(sources: Path, cache: Path) -> None:
    first = build(sources, cache)
    before = objects(cache)
    (sources / "part1.cpp").write_text("int other() { return 7; }\n")
    second = build(sources, cache)
    assert second != first
    assert first.exists()
    states: list[BuildState] = []
    (sources / "part1.cpp").write_text("int third() { return 8; }\n")
    DeviceBuild(find_torch(), sources).in_cache(cache, states.append)
    assert (states[0].done, states[0].total) == (2, 3)
    after = {path.name: path.stat().st_ino for path in cache.glob("*-objects/*.o")}
    assert sum(name.startswith("part1") for name in after) == 3
    assert {before["part0"], before["part2"]} <= set(after.values())


def test_a_changed_header_compiles_again_what_includes_it(sources: Path, cache: Path) -> None:
    (sources / "part0.cpp").write_text('#include "middle.h"\n')
    (sources / "middle.h").write_text('#include "common.h"\n')
    first = build(sources, cache)
    (sources / "common.h").write_text("#pragma once\nint changed;\n")
    states: list[BuildState] = []
    assert DeviceBuild(find_torch(), sources).in_cache(cache, states.append) != first
    assert (states[0].done, states[0].total) == (2, 3)


def test_eight_processes_at_once_build_once(sources: Path, cache: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    compiler = tmp_path / "counting-g++"
    compiler.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\nsleep 0.2\nexec {" ".join(find_compiler())} "$@"\n'
    )
    compiler.chmod(0o755)
    processes = [
        _python_build(sources, cache, {"CXX": str(compiler)}, stdout=subprocess.PIPE) for _ in range(8)
    ]
    answers = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0] * 8
    assert len(answers) == 1
    assert (
        len([call for call in calls.read_text().splitlines() if " -o " in call]) == 4
    )  # three objects, the library


def _python_build(
    sources: Path, cache: Path, variables: dict[str, str], **options: int
) -> subprocess.Popen[str]:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from torchferry.sim.build import DeviceBuild\n"
        "from torchferry.building.build import ProgressLine\n"
        "from torchferry.building.toolchain import find_torch\n"
        "print(DeviceBuild(find_torch(), Path(sys.argv[1])).in_cache(Path(sys.argv[2]), ProgressLine()))\n"
    )
    command = [sys.executable, "-c", code, str(sources), str(cache)]
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        command, env={**os.environ, **variables}, text=True, **options
    )


def _slow_compiler(folder: Path) -> tuple[Path, Path]:
    compiler, pids = folder / "slow", folder / "pids"
    compiler.write_text(SLOW.format(pids=pids))
    compiler.chmod(0o755)
    return compiler, pids


def _wait_for(path: Path) -> None:
    until = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < until, f"{path} never appeared"
        time.sleep(0.02)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_interrupting_ends_the_compilers_and_leaves_nothing_half_made(
    sources: Path, cache: Path, tmp_path: Path
) -> None:
    compiler, pids = _slow_compiler(tmp_path)
    process = _python_build(sources, cache, {"CXX": str(compiler)}, stderr=subprocess.PIPE)
    _wait_for(pids)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert not [pid for pid in map(int, pids.read_text().split()) if _is_running(pid)]
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert is_complete(build(sources, cache).parent)


def test_a_killed_build_does_not_block_the_next(sources: Path, cache: Path, tmp_path: Path) -> None:
    compiler, pids = _slow_compiler(tmp_path)
    process = _python_build(sources, cache, {"CXX": str(compiler)})
    _wait_for(pids)
    process.kill()
    process.wait()
    for pid in map(int, pids.read_text().split()):
        os.killpg(pid, signal.SIGKILL)
    assert list(cache.glob("*-work"))
    assert is_complete(build(sources, cache).parent)
    assert not list(cache.glob("*-work"))


def test_a_compiler_error_is_one_line_and_a_log(
    sources: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sources / "part1.cpp").write_text("int broken() { return nowhere; }\n")
    with pytest.raises(BuildError) as caught:
        build(sources, cache)
    message = str(caught.value)
    assert "\n" not in message
    assert "part1.cpp" in message
    assert "nowhere" in message
    (log,) = cache.glob("*-failed.log")
    assert str(log) in message
    assert "nowhere" in log.read_text()
    assert "nowhere" in capsys.readouterr().err
    assert not [path for path in cache.iterdir() if is_complete(path)]
    (sources / "part1.cpp").write_text(PLAIN.format(number=1))
    build(sources, cache)
    assert not log.exists()


def test_a_symbol_that_nobody_defines_fails_at_build_time(sources: Path, cache: Path) -> None:
    (sources / "part1.cpp").write_text("int nobody(); int caller() { return nobody(); }\n")
    with pytest.raises(BuildError, match=r"undefined reference.*nobody"):
        build(sources, cache)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(BuildError, match=r"install g\+\+.*wheel"):
        find_compiler()
    monkeypatch.setenv("CXX", "nowhere++ -m64")
    with pytest.raises(BuildError, match=r"\$CXX is 'nowhere\+\+'"):
        find_compiler()


def test_clang_is_taken_when_there_is_no_gcc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "clang++").write_text("")
    (tmp_path / "clang++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert find_compiler() == ("clang++",)


def _torch(folder: Path, version: str, symbols: bytes = b"") -> TorchInstallation:
    (folder / "lib").mkdir(parents=True)
    (folder / "version.py").write_text(f"__version__ = '{version}'\n")
    (folder / "lib" / "libc10.so").write_bytes(symbols)
    return torch_in(folder, folder)


def test_an_old_torch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"torch 2\.3\.1 is too old; .* need torch 2\.4 or newer"):
        _torch(tmp_path, "2.3.1")


@pytest.mark.parametrize(
    ("version", "label"),
    [
        ("2.13.0+cpu", "2.13.0-{machine}-cxx11abi1"),
        ("2.6.0+cu124", "2.6.0-{machine}-cxx11abi1"),
        ("2.6.0a0+ecf3bae40a.nv25.01", "2.6.0a0+ecf3bae40a.nv25.01-{machine}-cxx11abi1"),
        ("2.4.1", "2.4.1-{machine}-cxx11abi1"),
    ],
)
def test_builds_of_one_release_share_a_library(tmp_path: Path, version: str, label: str) -> None:
    assert _torch(tmp_path, version).label == label.format(machine=os.uname().machine)


def test_the_old_form_of_strings_is_seen(tmp_path: Path) -> None:
    found = _torch(tmp_path, "2.4.1+cu121", b"..\0_ZN3c105ErrorC1ENS_14SourceLocationESs\0..")
    assert not found.cxx11_abi
    assert "-D_GLIBCXX_USE_CXX11_ABI=0" in compile_flags(found)


@pytest.mark.parametrize(
    ("version", "standard"), [("2.4.1", "c++17"), ("2.11.0", "c++17"), ("2.13.0", "c++20")]
)
def test_the_standard_is_what_the_headers_ask_for(tmp_path: Path, version: str, standard: str) -> None:
    assert f"-std={standard}" in compile_flags(_torch(tmp_path, version))


def test_builds_not_used_for_two_weeks_are_removed(sources: Path, cache: Path) -> None:
    old = build(sources, cache).parent
    (sources / "part0.cpp").write_text("int a;\n")
    recent = build(sources, cache).parent
    other = cache / "2.5.0-cxx11abi1-0123456789abcdef"
    other.mkdir()
    for path in [old, other, *(cache.glob("*-objects/part0-*"))]:
        os.utime(path, (0, time.time() - TWO_WEEKS - 60))
    (sources / "part0.cpp").write_text("int b;\n")
    newest = build(sources, cache).parent
    assert [path.exists() for path in (old, recent, newest, other)] == [False, True, True, True]
    assert len(list(cache.glob("*-objects/part0-*"))) == 1


def test_a_cache_that_can_not_be_written_gives_way_to_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(build_cache.VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = build_cache.writable_folder("sim")
    assert place.parent == tmp_path
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert str(place) in capsys.readouterr().err
    assert build_cache.writable_folder("sim") == place
    place.chmod(0o777)  # anybody could have put a library there
    assert build_cache.writable_folder("sim") != place


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(build_cache.VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert build_cache.folder("sim") == Path.home() / ".cache/torchferry/sim"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build_cache.folder("sim") == tmp_path / "torchferry/sim"
    monkeypatch.setenv(build_cache.VARIABLE, str(tmp_path / "mine"))
    assert build_cache.folder("sim") == tmp_path / "mine/sim"


@pytest.mark.parametrize(("free", "places"), [(0.5, 1), (1.9, 1), (2.1, 2)])
def test_little_memory_means_one_compiler(monkeypatch: pytest.MonkeyPatch, free: float, places: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    lines = {"/proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {int(free * (1 << 20))} kB\n"}
    monkeypatch.setattr(building, "_text", lambda path: lines.get(path, ""))
    assert building.parallel_jobs() == places


def test_the_progress_line_in_a_log_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    stream = io.StringIO()
    line = ProgressLine(stream)
    line(BuildState(Stage.WAITING))
    line(BuildState(Stage.COMPILING, "2.13.0", 0, 2))
    line(BuildState(Stage.COMPILING, "2.13.0", 1, 2))
    while "1 of 2" not in stream.getvalue():
        time.sleep(0.01)
    line(BuildState(Stage.ENDED))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "ferry: waiting for another process that is building the simulated device"
    building = "ferry: building the simulated device for torch 2.13.0, once"
    assert building in lines
    assert lines[-1].startswith(f"{building}: 1 of 2 source files (50%), ")


def test_a_broken_build_folder_is_made_anew(sources: Path, cache: Path) -> None:
    library = build(sources, cache)
    library.unlink()
    assert build(sources, cache) == library
    assert (library.parent / LIBRARY).is_file()

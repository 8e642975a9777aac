"""The library of kernels: compiled once, by whoever comes first; not at all where that fails."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torchferry.accuracy.native import library
from torchferry.accuracy.native.standin import CSums
from torchferry.building import cache as build_cache
from torchferry.building.toolchain import find_compiler


@pytest.fixture(autouse=True)
def quick_compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast the library is does not matter here."""
    if "width" not in request.node.name:
        monkeypatch.setattr(
            library, "_FLAGS", tuple("-O0" if flag == "-O3" else flag for flag in library._FLAGS)
        )


@pytest.fixture
def path_in() -> Iterator[Any]:
    """Looks for the library anew."""
    library._path.cache_clear()
    yield library._path
    library._path.cache_clear()


def test_it_is_made_once_and_found_again(
    path_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(build_cache.VARIABLE, str(tmp_path))
    found = path_in()
    assert found is not None and found.parent == tmp_path / "native"
    made = found.stat().st_mtime_ns, found.stat().st_ino
    path_in.cache_clear()
    monkeypatch.setenv("CXX", "false")
    assert path_in() == found and found.stat().st_ino == made[1]
    assert sorted(path.suffix for path in found.parent.iterdir()) == [".lock", ".so"]


@pytest.mark.parametrize("compiler", ["false", "no-such-compiler"])
def test_without_a_compiler(
    path_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv(build_cache.VARIABLE, str(tmp_path))
    monkeypatch.setenv("CXX", compiler)
    assert path_in() is None
    assert not list(tmp_path.rglob("*.new"))


def test_a_cache_that_is_no_folder(path_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("")
    monkeypatch.setenv(build_cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(library, "private_temporary_folder", lambda: tmp_path)
    found = path_in()
    assert found is not None and found.parent == tmp_path


def test_another_processor_gets_a_library_of_its_own(path_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = library._digest()
    monkeypatch.setattr(library, "_cpu", lambda: "flags : mmx")
    assert library._digest() != here


def _ask(cache: str, compiler: str, answers: Any) -> None:
    os.environ.update({build_cache.VARIABLE: cache, "CXX": compiler})
    library._path.cache_clear()
    found = library._path()
    answers.put((os.getpid(), found and found.is_file()))


def test_many_processes_at_once(tmp_path: Path) -> None:
    """A compiler that notes each call: only one is made."""
    script = tmp_path / "compiler"
    script.write_text(f'#!/bin/sh\necho call >> {tmp_path}/calls\nexec g++ "$@"\n')
    script.chmod(0o755)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    processes = [
        context.Process(target=_ask, args=(str(tmp_path / "cache"), str(script), answers)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    found = [answers.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    assert [is_there for _, is_there in found] == [True] * 4
    assert (tmp_path / "calls").read_text() == "call\n"


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines have one width of vectors")
def test_results_do_not_depend_on_the_width_of_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_FOR_THIS_CPU", "-march=x86-64")
    narrow = ctypes.CDLL(str(library._compile(find_compiler(), tmp_path / "narrow.so")))
    wide = library.library()
    assert wide is not None
    generator = np.random.default_rng(1)
    golden = generator.standard_normal(5003).astype(np.float32)
    mine = golden + generator.standard_normal(5003).astype(np.float32) * np.float32(1e-3)
    number = library.NUMBERS["float32"]
    found = []
    for each in (narrow, wide):
        sums, row = CSums(), ctypes.create_string_buffer(72)
        tensors = [ctypes.c_void_p(mine.ctypes.data), number, ctypes.c_void_p(golden.ctypes.data), number]
        each.torchferry_differences(*tensors, ctypes.c_uint64(5003), ctypes.byref(sums))
        each.torchferry_statistics(*tensors[:2], ctypes.c_uint64(5003), row)
        found.append((bytes(sums), row.raw))
    assert found[0] == found[1]

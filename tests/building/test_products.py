"""Products of several libraries: one links another, bears its name, has sources that are made for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.building.build import BuildState, Library, NativeBuild, Product, silent
from torchferry.building.toolchain import find_torch
from torchferry.errors import BuildError
from torchferry.text import Text

_ASK = """
import ctypes, os, sys
for name in sys.argv[2:]:
    library = ctypes.CDLL(os.path.join(sys.argv[1], name), os.RTLD_GLOBAL)
print(library.twice(), library.seven())
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "csrc"
    for name, text in {
        "low/low.cpp": '#include "low.h"\nint low() { return LOW; }\n',
        "low/low.h": '#pragma once\n#include "../shared/value.h"\nint low();\n',
        "shared/value.h": "#pragma once\n#define LOW 21\n",
        "high/high.cpp": '#include "low.h"\nextern "C" int twice() { return 2 * low(); }\n',
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def write_seven(folder: Path) -> Sequence[Path]:
    path = folder / "seven.cpp"
    path.write_text('extern "C" int seven() { return 7; }\n')
    return [path]


def product(sources: Path) -> Product:
    low, high = sources / "low", sources / "high"
    headers = tuple(sorted(sources.rglob("*.h")))
    flags = ("-std=c++17", "-fPIC")
    parts = (
        Library("liblow.so", (low / "low.cpp",), headers, (low,), flags, soname=True),
        Library(
            "libhigh.so",
            (high / "high.cpp",),
            headers,
            (low,),
            flags,
            ("-iquote", str(low)),
            generate=write_seven,
            links=("liblow.so",),
            soname=True,
        ),
        Library("libempty.so", links=("libhigh.so",), soname=True),
    )
    return Product(
        parts, Text("the thing", "此物"), finish=lambda folder: (folder / "more").touch(), finished=("more",)
    )


def build(made: Product, cache: Path) -> Path:
    cache.mkdir(exist_ok=True)
    return NativeBuild(find_torch(), made).in_cache(cache, silent)


def test_libraries_are_found_by_their_names_once_they_are_loaded(sources: Path, tmp_path: Path) -> None:
    made = product(sources)
    folder = build(made, tmp_path / "cache")
    assert made.is_complete(folder)
    names = [library.name for library in made.libraries]
    command = [sys.executable, "-c", _ASK, str(folder), *names]
    assert subprocess.check_output(command, text=True) == "42 7\n"
    empty = subprocess.check_output(["readelf", "-d", str(folder / "libempty.so")], text=True)
    assert "[libempty.so]" in empty and "[libhigh.so]" in empty and "RUNPATH" not in empty


def test_a_header_of_another_folder_makes_what_includes_it_anew(sources: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = build(product(sources), cache)
    (sources / "shared" / "value.h").write_text("#pragma once\n#define LOW 4\n")
    states: list[BuildState] = []
    second = NativeBuild(find_torch(), product(sources)).in_cache(cache, states.append)
    assert second != first
    assert (states[0].done, states[0].total, states[0].product) == (1, 3, Text("the thing", "此物"))


@pytest.mark.parametrize("change", ["flags", "key_words", "links"])
def test_all_that_decides_is_in_the_key(sources: Path, change: str) -> None:
    made = product(sources)
    low, *rest = made.libraries
    changed = replace(low, **{change: (*getattr(low, change), "-DX")})
    other = replace(made, libraries=(changed, *rest))
    assert NativeBuild(find_torch(), made).key != NativeBuild(find_torch(), other).key


def test_a_failure_names_the_product_and_the_file(sources: Path, tmp_path: Path) -> None:
    (sources / "high" / "high.cpp").write_text("int broken() { return nowhere; }\n")
    with pytest.raises(BuildError, match=r"the thing can't be built: .* failed on high.cpp: .*nowhere"):
        build(product(sources), tmp_path / "cache")


def test_a_library_of_which_others_lack_a_symbol_is_not_made(sources: Path, tmp_path: Path) -> None:
    made = product(sources)
    low, high, empty = made.libraries
    with pytest.raises(BuildError, match=r"failed on libhigh.so"):
        build(replace(made, libraries=(low, replace(high, links=()), empty)), tmp_path / "cache")

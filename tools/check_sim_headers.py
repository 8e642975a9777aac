"""Checks that the sources of the simulated device and of the recorder fit the headers of several PyTorch releases; installs none of them.

python tools/check_sim_headers.py [VERSION ...]    newest: the latest release there is
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from torchferry.accuracy.record import quick_observer
from torchferry.building.build import parallel_jobs
from torchferry.building.toolchain import TorchInstallation, compile_flags, find_compiler, path_flags
from torchferry.errors import BuildError
from torchferry.operators.native_functions import LIST_IN_TORCHGEN, read_native_functions
from torchferry.sim.build import SOURCES

OURS = (SOURCES, quick_observer.SOURCES)
VERSIONS = ("2.4.1", "2.6.0", "2.9.1", "2.13.0", "newest")
HEADERS = Path(__file__).resolve().parent.parent / ".cache" / "torch-headers"

# The headers are the same everywhere, and a wheel without CUDA's kernels is a tenth of one with them.
_PLATFORMS = ("macosx_11_0_arm64", "macosx_14_0_arm64")
_WANTED = ("torch/include/", f"torchgen/{LIST_IN_TORCHGEN}")
_BYTES_NEEDED = 1 << 30  # a wheel, and what is taken out of it


@dataclass(frozen=True)
class Check:
    """One source against one release; an empty problem means that it compiles."""

    torch: str
    source: str
    problem: str


def main(arguments: list[str] | None = None) -> int:
    """Print a table; 1 if anything does not compile."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument(
        "--sources", type=Path, nargs="*", default=OURS, help="folders with .cpp and .h files"
    )
    args = parser.parse_args(arguments)
    checks = [check for version in args.versions for check in check_version(version, args.sources)]
    print(table(checks))
    return 1 if any(check.problem for check in checks) else 0


def check_version(version: str, folders: Sequence[Path]) -> list[Check]:
    """Every source against the headers of one release, and the reader against its operator list."""
    folder = headers_of(version)
    torch = TorchInstallation(folder.name, folder / "torch", folder / "torchgen", cxx11_abi=True)
    with ThreadPoolExecutor(parallel_jobs()) as pool:
        sources = [source for each in folders for source in sorted(each.glob("*.cpp"))]
        checks = list(pool.map(lambda source: _check_source(torch, source), sources))
    return [*checks, _check_operator_list(torch)]


def _check_source(torch: TorchInstallation, source: Path) -> Check:
    flags = (*compile_flags(torch), *path_flags(torch, source.parent))
    python = ("-isystem", sysconfig.get_path("include"))
    command = [*find_compiler(), *flags, *python, "-fsyntax-only", str(source)]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if result.returncode == 0:
        return Check(torch.build, source.name, "")
    print(f"--- torch {torch.version}: {source.name}\n{result.stderr}", file=sys.stderr)
    errors = [line for line in result.stderr.splitlines() if "error:" in line]
    return Check(torch.build, source.name, f"{len(errors)} errors")


def _check_operator_list(torch: TorchInstallation) -> Check:
    try:
        facts = read_native_functions((torch.torchgen / LIST_IN_TORCHGEN).read_text("utf-8"))
    except BuildError as error:
        return Check(torch.build, LIST_IN_TORCHGEN.name, str(error))
    problem = "" if "CPU" in facts["add.out"].kernels else "no kernel of add.out found"
    return Check(torch.build, LIST_IN_TORCHGEN.name, problem)


def headers_of(version: str) -> Path:
    """The folder with what is needed of a release, downloaded if it is not there."""
    place = HEADERS / (_newest() if version == "newest" else version)
    if place.is_dir():
        return place
    HEADERS.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(HEADERS).free < _BYTES_NEEDED:
        raise SystemExit(f"less than {_BYTES_NEEDED >> 30} GiB free in {HEADERS}")
    with tempfile.TemporaryDirectory(dir=HEADERS) as aside:
        _extract(_download(place.name, Path(aside)), Path(aside, "taken"))
        Path(aside, "taken").rename(place)
    return place


def _newest() -> str:
    command = [sys.executable, "-m", "pip", "index", "versions", "torch"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.match(r"torch \(([\d.]+)", answer)
    if not found:
        raise SystemExit(f"pip does not say which torch is the newest: {answer!r}")
    return found[1]


def _download(version: str, folder: Path) -> Path:
    requirement = f"torch=={version}"
    platforms = [word for name in _PLATFORMS for word in ("--platform", name)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--no-cache-dir", "--python-version", "3.11", *platforms, "--dest", str(folder), requirement]
    print(f"downloading {requirement}", file=sys.stderr)
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _extract(wheel: Path, folder: Path) -> None:
    """Take out what is needed and drop the rest."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(_WANTED)])
    wheel.unlink()


def table(checks: list[Check]) -> str:
    """A row per source, a column per release."""
    versions = list(dict.fromkeys(check.torch for check in checks))
    sources = list(dict.fromkeys(check.source for check in checks))
    results = {(check.torch, check.source): check.problem or "ok" for check in checks}
    rows = [["", *versions], *([source, *(results[v, source] for v in versions)] for source in sources)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""Speed as ratios measured in one run: conversion against ast.parse and LibCST, start-up against Python's own."""

from __future__ import annotations

import argparse
import ast
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.corpus.fetch import fetch, projects  # noqa: E402

FERRY = Path(sys.executable).parent / "ferry"
# Creating a file costs 10 to 500 microseconds, by file system and its state. A file system in memory, where there
# is one, keeps that out of the ratios; `cp -r` to the same place shows what is left of it.
MEMORY = Path("/dev/shm")
OUT = (MEMORY if MEMORY.is_dir() else ROOT / ".cache") / "ferry-bench-out"
LARGE = "transformers"
OPT_INS = (
    *("--similar", "--amp", "--channels-last", "--fixed-shape", "--float32-data", "--blocking-copies"),
    *("--drop-cudnn-flags", "--no-pin-memory", "--specify-device"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="also each project of the corpus by itself")
    parser.add_argument("--without-libcst", action="store_true", help="skip the slow comparison")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    cores = os.cpu_count()
    print(
        f"{time.strftime('%Y-%m-%d')}, Python {sys.version.split()[0]}, {cores} cores; CPU time, user and system\n"
    )
    folders = {project.name: fetch(project) for project in projects()}
    compare_conversion(LARGE, folders[LARGE], with_libcst=not args.without_libcst)
    if args.all:
        for name, folder in folders.items():
            compare_conversion(name, folder, with_libcst=False)
    compare_start_up()


def compare_conversion(name: str, folder: Path, with_libcst: bool) -> None:
    """`ferry convert -j 1`, start-up and writing included, against parsing every file of the project."""
    sources = [path.read_bytes() for path in sorted(folder.rglob("*.py"))]
    lines = sum(source.count(b"\n") for source in sources)
    parse = statistics.median(cpu_time(lambda: parse_all(sources)) for _ in range(3))
    convert = statistics.median(convert_time(folder) for _ in range(3))
    with_opt_ins = statistics.median(convert_time(folder, *OPT_INS) for _ in range(3))
    copy = statistics.median(copy_time(folder) for _ in range(3))
    print(f"{name}: {len(sources):,} Python files, {lines:,} lines")
    print(f"  ast.parse of all files          {parse:7.2f} s   1.00")
    print(f"  ferry convert --to ascend -j 1  {convert:7.2f} s   {convert / parse:.2f}")
    print(f"    with all opt-in rules         {with_opt_ins:7.2f} s   {with_opt_ins / parse:.2f}")
    print(f"  cp -r of the same project       {copy:7.2f} s   {copy / parse:.2f}")
    if with_libcst:
        hits = [source for source in sources if b"cuda" in source or b"nccl" in source]
        compare_with_libcst(hits)
    print()


def compare_with_libcst(sources: list[bytes]) -> None:
    """LibCST with qualified names, which a rewriter needs, over the files with anything to convert."""
    import libcst
    from libcst.metadata import MetadataWrapper, QualifiedNameProvider

    def visit(source: bytes) -> bytes:
        wrapper = MetadataWrapper(libcst.parse_module(source), unsafe_skip_copy=True)
        wrapper.resolve(QualifiedNameProvider)
        return wrapper.module.bytes

    sample = sources[:: max(1, len(sources) // 25)]
    with tempfile.TemporaryDirectory() as name:
        for number, source in enumerate(sample):
            (Path(name) / f"m{number}.py").write_bytes(source)
        ours = convert_time(Path(name)) - convert_time_of_nothing()
    theirs = cpu_time(lambda: [visit(source) for source in sample])
    print(f"  on {len(sample)} of the files with anything to convert, start-up not counted:")
    print(
        f"    LibCST: parse, qualified names, write   {theirs:7.2f} s   {theirs / ours:.0f} x ferry convert"
    )


def compare_start_up() -> None:
    """`ferry --help` against an interpreter that does nothing."""
    empty = median_wall([sys.executable, "-c", "pass"])
    helped = median_wall([str(FERRY), "--help"])
    print(f"python -c pass   {empty * 1000:6.1f} ms   1.00")
    print(f"ferry --help     {helped * 1000:6.1f} ms   {helped / empty:.2f}")


def parse_all(sources: list[bytes]) -> None:
    for source in sources:
        try:
            ast.parse(source)
        except (SyntaxError, ValueError):
            continue


def cpu_time(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def child_time(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def convert_time(folder: Path, *options: str) -> float:
    shutil.rmtree(OUT, ignore_errors=True)
    command = [str(FERRY), "convert", str(folder), "-o", str(OUT), "--to", "ascend", "-j", "1", "-q"]
    spent = child_time([*command, *options])
    if not (OUT / "findings.json").exists():
        raise SystemExit(f"the conversion of {folder.name} failed")
    shutil.rmtree(OUT)
    return spent


def convert_time_of_nothing() -> float:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "empty.py").write_text("")
        return statistics.median(convert_time(Path(name)) for _ in range(3))


def copy_time(folder: Path) -> float:
    shutil.rmtree(OUT, ignore_errors=True)
    spent = child_time(["cp", "-r", str(folder), str(OUT)])
    shutil.rmtree(OUT)
    return spent


def median_wall(command: list[str]) -> float:
    times = []
    for _ in range(21):
        before = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - before)
    return statistics.median(times)


if __name__ == "__main__":
    main()

"""Gets the compiled half of the simulated device: carried by the wheel, from the cache, or compiled now.

`python -m torchferry.sim.build` does it ahead of time and prints where the library is.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from torchferry.errors import BuildError
from torchferry.operators import native_functions
from torchferry.sim import build_cache
from torchferry.sim.build_progress import BuildState, Progress, ProgressLine, Stage
from torchferry.sim.compiling import CompilerError, Job, run_jobs
from torchferry.sim.toolchain import (
    Compiler,
    TorchInstallation,
    compile_flags,
    find_compiler,
    find_torch,
    link_flags,
    path_flags,
)

LIBRARY = "libtorchferry_sim.so"
SOURCES = Path(__file__).parent / "csrc"
PREBUILT = Path(__file__).parent / "prebuilt"

_LOG_LINES = 15
_OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_REASON = re.compile(r"error:|undefined reference|No space")


def library_path(progress: Progress | None = None) -> Path:
    """The library for the installed PyTorch; the operator table lies beside it. Compiles it if it must."""
    if sys.platform != "linux":
        raise BuildError("the simulated device runs on Linux only")
    build = Build(find_torch(), SOURCES)
    folder = _found(build)
    if folder is not None:
        build_cache.mark_used(folder)
        return folder / LIBRARY
    return build.in_cache(build_cache.writable_folder(), progress or ProgressLine())


def is_built() -> bool:
    """Whether the library for the installed PyTorch is there already."""
    return sys.platform == "linux" and _found(Build(find_torch(), SOURCES)) is not None


def _found(build: Build) -> Path | None:
    cached = build_cache.folder() / build.key
    if is_complete(PREBUILT / build.key):
        return PREBUILT / build.key
    return cached if is_complete(cached) and build_cache.is_safe_to_load(cached / LIBRARY) else None


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a finished build."""
    return (folder / LIBRARY).is_file() and (folder / native_functions.TABLE).is_file()


class Build:
    """The library for one PyTorch from the sources in one folder."""

    def __init__(self, torch: TorchInstallation, sources: Path) -> None:
        self._torch = torch
        self._folder = sources
        self._flags = compile_flags(torch)
        # long files first: the last one to finish is then a short one
        self._sources = sorted(sources.glob("*.cpp"), key=lambda path: (-path.stat().st_size, path.name))
        self._headers = sorted(sources.glob("*.h"))
        if not self._sources:
            raise BuildError(f"{sources} holds no sources; install torchferry anew")
        own = [*sorted(self._sources), *self._headers, Path(native_functions.__file__)]
        self.key = f"{torch.label}-{_digest(own, self._flags)}"

    def in_cache(self, cache: Path, progress: Progress) -> Path:
        """The library in a cache; processes that ask at the same time wait for the first one's work."""
        folder = cache / self.key
        lock = cache / f"{self._torch.label}.lock"
        with build_cache.locked(lock, lambda: progress(BuildState(Stage.WAITING))):
            if not is_complete(folder):
                self._make(cache, folder, progress)
        build_cache.mark_used(folder)
        return folder / LIBRARY

    def _make(self, cache: Path, folder: Path, progress: Progress) -> None:
        """For the holder of the lock."""
        work = cache / f"{self._torch.label}-work"
        objects = cache / f"{self._torch.label}-objects"
        objects.mkdir(exist_ok=True)
        shutil.rmtree(work, ignore_errors=True)  # of a build that was killed
        work.mkdir()
        log = cache / f"{self._torch.label}-failed.log"
        try:
            self._make_result(objects, work, log, progress)
            build_cache.put_in_place(work / "result", folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        build_cache.remove_unused(cache, objects, self._torch.label)

    def _make_result(self, objects: Path, work: Path, log: Path, progress: Progress) -> None:
        """Make `work/result` with the library and the operator table; objects that are there are not made again."""
        compiler = find_compiler()
        result = work / "result"
        result.mkdir()
        with _log_of_failure(log):
            self._compile(compiler, objects, work, progress)
            self._link(compiler, objects, work, result)
        self._write_table(result)

    def _compile(self, compiler: Compiler, objects: Path, work: Path, progress: Progress) -> None:
        command = (*compiler.command, *self._flags, *path_flags(self._torch, self._folder), "-c")
        jobs = []
        for source in self._sources:
            target = self._object(compiler, objects, source)
            if target.exists():
                build_cache.mark_used(target)
            else:
                aside = work / target.name
                jobs.append(Job(source.name, (*command, str(source), "-o", str(aside)), aside, target))
        total = len(self._sources)
        started = time.monotonic()

        def report(finished: int) -> None:
            done = total - len(jobs) + finished
            progress(BuildState(Stage.COMPILING, self._torch.build, done, total, time.monotonic() - started))

        try:
            run_jobs(jobs, work, report)
        finally:
            progress(BuildState(Stage.ENDED))

    def _link(self, compiler: Compiler, objects: Path, work: Path, result: Path) -> None:
        parts = [str(self._object(compiler, objects, source)) for source in self._sources]
        aside = work / LIBRARY
        command = (*compiler.command, *parts, *link_flags(self._torch, compiler), "-o", str(aside))
        run_jobs([Job(LIBRARY, command, aside, result / LIBRARY)], work, lambda finished: None)

    def _object(self, compiler: Compiler, objects: Path, source: Path) -> Path:
        digest = _digest([source, *_own_headers(source)], [*compiler.command, *self._flags])
        return objects / f"{source.stem}-{digest}.o"

    def _write_table(self, folder: Path) -> None:
        source = self._torch.torchgen / native_functions.LIST_IN_TORCHGEN
        try:
            text = source.read_text("utf-8")
        except FileNotFoundError:
            raise BuildError(f"{source} is missing; install torch anew: pip install torch") from None
        facts = native_functions.read_native_functions(text)
        native_functions.write_operator_facts(facts, folder / native_functions.TABLE)


@contextmanager
def _log_of_failure(path: Path) -> Iterator[None]:
    """Keep what a failing compiler printed, show its end, and raise one line."""
    try:
        yield
    except CompilerError as failure:
        path.write_text(failure.log, "utf-8")
        lines = failure.log.splitlines()[1:]  # without the command
        print("\n".join(lines[-_LOG_LINES:]), file=sys.stderr)
        reason = next((line for line in lines if _REASON.search(line)), lines[-1])
        raise BuildError(
            f"the simulated device can't be built: {failure.job.command[0]} failed on {failure.job.name}: "
            f"{reason.strip()}; the whole log is in {path}"
        ) from None
    path.unlink(missing_ok=True)


def _own_headers(source: Path) -> list[Path]:
    """Our headers that a file includes, directly or not."""
    found: list[Path] = []
    files = [source]
    while files:
        for name in _OWN_INCLUDE.findall(files.pop().read_text("utf-8")):
            header = source.parent / name
            if header.is_file() and header not in found:
                found.append(header)
                files.append(header)
    return sorted(found)


def _digest(files: Sequence[Path], words: Sequence[str]) -> str:
    """A name for the content of some files and some words."""
    total = hashlib.sha256()
    for part in [
        *(path.name.encode() + b"\0" + path.read_bytes() for path in files),
        *map(str.encode, words),
    ]:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:16]


if __name__ == "__main__":
    print(library_path())

"""Makes shared libraries of C++ sources: compiled once, in one cache, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TextIO

from torchferry.building import cache as build_cache
from torchferry.building.toolchain import TorchInstallation, find_compiler, link_flags
from torchferry.errors import BuildError
from torchferry.files.aside import uninterrupted
from torchferry.report.progress import Counted, LongTask
from torchferry.text import Text


class Stage(Enum):
    """The stage that a build has reached."""

    WAITING = "another process compiles"
    COMPILING = "compiling"
    ENDED = "done, failed or interrupted"


@dataclass(frozen=True)
class BuildState:
    """How far a build is."""

    stage: Stage
    torch: str = ""
    done: int = 0
    total: int = 0
    product: Text = Text("the simulated device", "模拟设备")


Progress = Callable[[BuildState], None]


_NAMES = {
    Stage.WAITING: Text(
        "waiting for another process that is building {product}", "正在等待另一个进程编译 {product}"
    ),
    Stage.COMPILING: Text(
        "building {product} for torch {torch}, once", "正在为 torch {torch} 编译 {product}（仅此一次）"
    ),
}


class ProgressLine:
    """Tells how far one build is."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._stage = Stage.ENDED
        self._task: LongTask | None = None

    def __call__(self, state: BuildState) -> None:
        """Take notice of a new state."""
        if state.stage is not self._stage:
            self._stage = state.stage
            self._begin(state)
        if self._task is not None:
            self._task(state.done, state.total)

    def _begin(self, state: BuildState) -> None:
        if self._task is not None:
            self._task.stop()
            self._task = None
        if state.stage is not Stage.ENDED:
            name = _NAMES[state.stage].format(product=state.product, torch=state.torch)
            self._task = LongTask(name, Counted.SOURCES, self._stream, is_told_at_once=True)
            self._task.start()


def silent(state: BuildState) -> None:
    """Progress of a build that is not shown."""


_MOST_PROCESSES = 2
_BYTES_PER_PROCESS = 1 << 30  # PyTorch's headers take about that much
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Job:
    """One compiler call: it writes `aside`, which becomes `target` when it is whole."""

    name: str
    command: tuple[str, ...]
    aside: Path
    target: Path
    shown: str  # what it makes or reads, for people


class CompilerError(Exception):
    """A compiler could not be started, or ended with an error."""

    def __init__(self, job: Job, log: str) -> None:
        super().__init__(job.name)
        self.job = job
        self.log = log


def run_jobs(jobs: Sequence[Job], work: Path, report: Callable[[int], None]) -> None:
    """Run all jobs, the longest sources first; `work` takes logs and the compilers' own temporary files."""
    waiting = list(jobs)
    running: list[_Running] = []
    places = parallel_jobs()
    try:
        while waiting or running:
            while waiting and len(running) < places:
                with (
                    uninterrupted()
                ):  # between the start of a compiler and the note of it nobody would end it
                    running.append(_Running(waiting.pop(0), work))
            running = [each for each in running if not each.has_ended()]
            report(len(jobs) - len(waiting) - len(running))
            if running:
                time.sleep(_POLL_SECONDS)
    finally:
        for each in running:
            each.kill()


class _Running:
    def __init__(self, job: Job, work: Path) -> None:
        self._job = job
        self._log = work / f"{job.name}.log"
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    job.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "TMPDIR": str(work), "LC_ALL": "C"},
                    start_new_session=True,  # so that the compiler's own children can be ended with it
                )
        except OSError as error:
            raise CompilerError(job, f"$ {job.command[0]}\n{error.strerror}") from error

    def has_ended(self) -> bool:
        """Whether it is through; raises if it failed."""
        code = self._process.poll()
        if code is None:
            return False
        if code:
            log = self._log.read_text("utf-8", "replace")
            ending = (
                f"killed by signal {-code}, perhaps for lack of memory" if code < 0 else f"exit code {code}"
            )
            raise CompilerError(self._job, f"$ {' '.join(self._job.command)}\n{log}({ending})\n")
        self._job.aside.replace(self._job.target)
        return True

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def parallel_jobs() -> int:
    """How many compilers to run at once."""
    cores = len(os.sched_getaffinity(0))
    by_memory = _free_memory() // _BYTES_PER_PROCESS
    return max(1, min(_MOST_PROCESSES, cores, by_memory))


def _free_memory() -> int:
    """Bytes that this process may still take: of the machine, and of its control group."""
    free = [_MOST_PROCESSES * _BYTES_PER_PROCESS]
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            free.append(int(line.split()[1]) * 1024)
    limit, used = (_text(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    if limit.isdigit() and used.isdigit():
        free.append(int(limit) - int(used))
    return min(free)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except OSError:
        return ""


_LOG_LINES = 15
_OWN_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_REASON = re.compile(r"error:|undefined reference|No space")


@dataclass(frozen=True)
class Library:
    """One shared library: what it is made of, and how."""

    name: str  # libname.so
    sources: tuple[Path, ...] = ()
    headers: tuple[Path, ...] = ()  # ours, whether a source includes them or not
    # where headers of ours are searched, besides the folder of the file itself
    folders: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()  # decide what a source becomes
    path_flags: tuple[str, ...] = ()  # name places on this machine; what is there is said in `key_words`
    key_words: tuple[str, ...] = ()  # what else decides what a source becomes
    generate: Callable[[Path], Sequence[Path]] | None = None  # writes further sources into a folder
    generated_from: tuple[Path, ...] = ()  # the files that decide what it writes
    torch_libraries: tuple[str, ...] = ()  # of PyTorch's, by the names that a linker takes
    links: tuple[str, ...] = ()  # libraries of the same build, made before it
    soname: bool = False  # whether it bears its own name, so that others find it when it is loaded
    is_for_python: bool = False  # a module: it finds what is Python's in the process that loads it


@dataclass(frozen=True)
class Product:
    """Libraries that are made and kept together."""

    libraries: tuple[Library, ...]  # those that others link come first
    title: Text  # what it is in words, for the line that shows the progress
    extra_files: tuple[Path, ...] = ()  # decide what `finish` makes
    finish: Callable[[Path], None] = field(default=lambda folder: None)  # adds further files
    finished: tuple[str, ...] = ()  # their names

    def is_complete(self, folder: Path) -> bool:
        """Whether a folder holds all of it."""
        names = (*(library.name for library in self.libraries), *self.finished)
        return all((folder / name).is_file() for name in names)


class NativeBuild:
    """A product made for one PyTorch."""

    def __init__(self, torch: TorchInstallation, product: Product) -> None:
        self._torch = torch
        self._product = product
        files: list[Path] = []
        words: list[str] = []
        for library in product.libraries:
            files += [*sorted(library.sources), *library.headers, *library.generated_from]
            words += [library.name, *library.flags, *library.key_words]
            words += [*library.torch_libraries, *library.links]
        self.key = f"{torch.label}-{digest([*files, *product.extra_files], words)}"

    def in_cache(self, cache: Path, progress: Progress) -> Path:
        """The folder of the libraries in a cache; processes that ask at the same time wait for the first one's work."""
        folder = cache / self.key
        lock = cache / f"{self._torch.label}.lock"
        title = self._product.title
        try:
            with build_cache.locked(lock, lambda: progress(BuildState(Stage.WAITING, product=title))):
                if not self._product.is_complete(folder):
                    self._make(cache, folder, progress)
        finally:
            progress(BuildState(Stage.ENDED))
        build_cache.mark_used(folder)
        return folder

    def _make(self, cache: Path, folder: Path, progress: Progress) -> None:
        work = cache / f"{self._torch.label}-work"
        objects = cache / f"{self._torch.label}-objects"
        objects.mkdir(exist_ok=True)
        shutil.rmtree(work, ignore_errors=True)  # of a build that was killed
        work.mkdir()
        log = cache / f"{self._torch.label}-failed.log"
        try:
            compiler = find_compiler()
            result = work / "result"
            result.mkdir()
            with _log_of_failure(self._product.title, log):  # objects that are there are not made again
                parts = self._compile(compiler, objects, work, progress)
                for library in self._product.libraries:
                    self._link(compiler, library, parts[library.name], work, result)
            self._product.finish(result)
            build_cache.put_in_place(result, folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        build_cache.remove_unused(cache, objects, self._torch.label)

    def _compile(
        self, compiler: Sequence[str], objects: Path, work: Path, progress: Progress
    ) -> dict[str, list[Path]]:
        """Library -> its objects."""
        parts: dict[str, list[Path]] = {}
        jobs: list[tuple[int, Job]] = []
        for library in self._product.libraries:
            parts[library.name] = []
            command = (*compiler, *library.flags, *library.path_flags, "-c")
            generated: Sequence[Path] = ()
            if library.generate is not None:
                folder = work / "generated" / library.name
                folder.mkdir(parents=True)
                generated = library.generate(folder)
            words = (*compiler, *library.flags, *library.key_words)
            for source in (*library.sources, *generated):
                content = digest([source, *_own_headers(source, library.folders)], words)
                target = objects / f"{source.stem}-{content}.o"
                parts[library.name].append(target)
                if target.exists():
                    build_cache.mark_used(target)
                    continue
                aside = work / target.name
                job = Job(target.stem, (*command, str(source), "-o", str(aside)), aside, target, source.name)
                jobs.append((source.stat().st_size, job))
        # long files first: the last one to finish is then a short one
        jobs.sort(key=lambda sized: (-sized[0], sized[1].name))
        self._run([job for _, job in jobs], sum(map(len, parts.values())), work, progress)
        return parts

    def _run(self, jobs: list[Job], total: int, work: Path, progress: Progress) -> None:
        def report(finished: int) -> None:
            done = total - len(jobs) + finished
            progress(BuildState(Stage.COMPILING, self._torch.build, done, total, self._product.title))

        run_jobs(jobs, work, report)

    def _link(
        self, compiler: Sequence[str], library: Library, parts: list[Path], work: Path, result: Path
    ) -> None:
        aside = work / library.name
        torch = self._torch if library.torch_libraries else None
        command = (
            *compiler,
            *map(str, parts),
            *link_flags(compiler, torch, library.torch_libraries),
            *(str(result / name) for name in library.links),
            *([f"-Wl,-soname,{library.name}"] if library.soname else []),
            *(["-Wl,-z,undefs"] if library.is_for_python else []),
            "-o",
            str(aside),
        )
        job = Job(library.name, command, aside, result / library.name, library.name)
        run_jobs([job], work, lambda finished: None)


@contextmanager
def _log_of_failure(title: Text, path: Path) -> Iterator[None]:
    """Keep what a failing compiler printed, show its end, and raise one line."""
    try:
        yield
    except CompilerError as failure:
        path.write_text(failure.log, "utf-8")
        lines = failure.log.splitlines()[1:]  # without the command
        print("\n".join(lines[-_LOG_LINES:]), file=sys.stderr)
        reason = next((line for line in lines if _REASON.search(line)), lines[-1])
        raise BuildError(
            Text(
                f"{title.en} can't be built: {failure.job.command[0]} failed on {failure.job.shown}: {reason.strip()}"
                f"; the full log is in {path}",
                f"{title.zh} 构建失败：{failure.job.command[0]} 编译 {failure.job.shown} 时出错：{reason.strip()}；"
                f"完整日志见 {path}",
            )
        ) from None
    path.unlink(missing_ok=True)


def _own_headers(source: Path, folders: Sequence[Path]) -> list[Path]:
    """Our headers that a file includes, directly or not."""
    found: dict[Path, None] = {}
    files = [source]
    while files:
        file = files.pop()
        for name in _OWN_INCLUDE.findall(file.read_text("utf-8")):
            places = (place / name for place in (file.parent, *folders))
            header = next((place.resolve() for place in places if place.is_file()), None)
            if header is not None and header not in found:
                found[header] = None
                files.append(header)
    return sorted(found)


def digest(files: Sequence[Path], words: Sequence[str] = ()) -> str:
    """A name for the content of some files and some words."""
    total = hashlib.sha256()
    contents = [path.name.encode() + b"\0" + path.read_bytes() for path in files]
    for part in (*contents, *map(str.encode, words)):
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()[:16]

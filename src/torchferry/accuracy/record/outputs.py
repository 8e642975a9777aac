"""Which file each process of a run writes, and what it tells the launcher of it. Imports no torch."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from torchferry.accuracy.record.settings import RecordSettings
from torchferry.files.aside import write_whole

_SUFFIX = ".outcome.json"
_LOCK = "lock"
_CLEARED = "cleared"
_OF_ONE_PROCESS = r"\.(rank|process)\d+"


@dataclass(frozen=True)
class Outcome:
    """What one process has written."""

    path: str
    process: int
    rank: int = 0
    world: int = 1
    is_over: bool = False  # the process has ended the file itself
    first_step: int = 1
    steps: int = 0  # that were made, the first wanted one included
    calls: int = 0
    nbytes: int = 0  # of tensors, each content once
    raw_nbytes: int = 0  # as if every tensor of every call were written
    seconds: float = 0.0
    problem: str = ""  # what ended the recording early: the disk is full, ...
    notes: tuple[str, ...] = ()
    paired: int = 0  # calls that had recorded inputs
    recorded: int = 0  # calls of the record that was replayed
    unpaired: int = 0  # calls that had none
    examples: tuple[str, ...] = ()  # their operators


def file_of(output: Path, rank: int, world: int) -> Path:
    """gpu.h5 where there is one process, gpu.rank0.h5, gpu.rank1.h5 ... where there are several."""
    return output if world <= 1 else output.with_name(f"{output.stem}.rank{rank}{output.suffix}")


def files_of(output: Path) -> list[Path]:
    """Those of all processes that are there now."""
    pattern = re.compile(f"{re.escape(output.stem)}(?:{_OF_ONE_PROCESS})?{re.escape(output.suffix)}")
    folder = output.parent
    names = os.listdir(folder) if folder.is_dir() else []
    return [folder / name for name in sorted(names) if pattern.fullmatch(name)]


class Output:
    """The file of this process."""

    def __init__(self, settings: RecordSettings, rank: int, world: int) -> None:
        self._folder = Path(settings.folder) if settings.folder else None
        self.path = file_of(Path(settings.output), rank, world)
        self._outcome = Outcome(str(self.path), os.getpid(), rank, world, first_step=settings.first_step)
        if self._folder is not None:
            self._claim(self._folder, settings.replaced)

    def tell(self, **known: object) -> None:
        """Say what is known now; whole or not at all."""
        self._outcome = replace(self._outcome, **known)  # type: ignore[arg-type]  # names of its fields
        if self._folder is not None:
            path = self._folder / f"{os.getpid()}{_SUFFIX}"
            write_whole(path, json.dumps(asdict(self._outcome)).encode())

    def _claim(self, folder: Path, replaced: Iterable[str]) -> None:
        """A name that no other process of this run has. The first one removes what an earlier run has left."""
        with _locked(folder):
            cleared = folder / _CLEARED
            if not cleared.exists():
                for name in replaced:
                    with suppress(FileNotFoundError):
                        os.unlink(name)
                cleared.touch()
            taken = {Path(outcome.path) for outcome in outcomes(folder)}
            wanted, number = self.path, 1
            while self.path in taken:  # a process that torch.distributed does not know of
                number += 1
                self.path = wanted.with_name(f"{wanted.stem}.process{number}{wanted.suffix}")
            self.tell(path=str(self.path))


def outcomes(folder: Path) -> list[Outcome]:
    """Of all processes, in the order of ranks."""
    read = [json.loads(file.read_text("utf-8")) for file in sorted(folder.glob(f"*{_SUFFIX}"))]
    tuples = ("notes", "examples")
    found = [Outcome(**{**fields, **{name: tuple(fields[name]) for name in tuples}}) for fields in read]
    return sorted(found, key=lambda outcome: (outcome.rank, outcome.path))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

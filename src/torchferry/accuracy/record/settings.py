"""What a process is to record, and how the launcher tells it: as one environment variable. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from torchferry import variables
from torchferry.accuracy.model import Kept
from torchferry.accuracy.record.slicing import Slicing
from torchferry.launch.parts import PartSettings, hash_seed


@dataclass(frozen=True)
class RecordSettings(PartSettings):
    """What to record, of which steps, and where to put it."""

    variable: ClassVar[str] = variables.RECORD
    starts: ClassVar[str] = "torchferry.accuracy.record.program:start"
    is_uncompiled: ClassVar[bool] = True
    looker: ClassVar[str] = "torchferry.accuracy.record.process:RecordPart"  # what looks at the operators

    output: str  # the file; an absolute path. Where there are several processes, each adds its rank
    folder: str = ""  # where processes tell the launcher what they wrote; "": there is no launcher
    program: str = ""  # how the user calls it
    again: str = ""  # with which options, besides the vendor's: see Header.options
    kept: Kept = Kept.TENSORS
    first_step: int = 1
    steps: int | None = 1  # so many, from the first one on; None: to the program's own end
    whole: bool = False  # from `import torch` on, not from the first module that is called
    keep_going: bool = False  # the program goes on after the last of the steps
    modules: tuple[str, ...] = ()  # patterns of those wanted; none: all
    operators: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    rank: int | None = None  # the only one that records
    device: str = ""  # the type of the device that computes; "": the program chooses
    vendor: str = ""
    simulated: bool = False
    replay: str = ""  # the record whose inputs the operators are given
    seed: int | None = None
    every: int = 1  # of the steps, the first one and each n-th
    modules_only: bool = False  # what modules are given and answer, in the place of operators
    slices: int = 0  # of tensors that are larger than so many bytes, evenly spaced; 0: all elements are kept
    slice_over: int = 0
    limit: int | None = None  # bytes that the records of one machine may take; None: as the disk allows
    replaced: tuple[str, ...] = ()  # files of an earlier run, removed when the first new one begins

    def environment(self) -> dict[str, str]:
        """The variables that make a process play the part."""
        return {**super().environment(), **hash_seed(self.seed)}

    @property
    def last_step(self) -> int | None:
        """The number of the last step that is wanted; None: there is none."""
        return None if self.steps is None else self.first_step + self.steps - 1

    def selection(self) -> Selection:
        """Which calls are wanted of the steps up to the last one."""
        first = self.first_step if self.every > 1 else 1  # the recorder does not begin before it
        return Selection(self.modules, self.operators, self.phases, first, every=self.every)

    @property
    def slicing(self) -> Slicing | None:
        """Which tensors are kept in part."""
        return Slicing(self.slice_over, self.slices) if self.slices else None

    @property
    def recorded_steps(self) -> int | None:
        """How many of the steps are wanted; None: there is no last one."""
        if self.last_step is None:
            return None
        return sum(map(self.selection().has_step, range(self.first_step, self.last_step + 1)))


@dataclass(frozen=True)
class OverflowSettings(RecordSettings):
    """What to check: all operators up to the first one that makes something that is not finite."""

    looker: ClassVar[str] = "torchferry.accuracy.overflow.process:OverflowPart"

    updates: int | None = None  # steps that a GradScaler did not skip, after which it is enough; None: no end
    last: int = 20  # operators before it that are told
    half: bool = False  # what would overflow in half precision counts
    strict: bool = False  # what a GradScaler handles counts


@dataclass(frozen=True)
class WatchSettings(RecordSettings):
    """What to keep of a long run: statistics of the first step and of each n-th."""

    looker: ClassVar[str] = "torchferry.accuracy.watch.watcher:WatchPart"

    every: int = 100


# Which calls are wanted.


@dataclass(frozen=True)
class Selection:
    """Patterns as in a shell; what is empty leaves nothing out."""

    modules: tuple[str, ...] = ()  # paths in the model, and all below them; the model itself by its name
    operators: tuple[str, ...] = ()  # aten::add.Tensor, or parts of it: add, add.Tensor, *conv*
    phases: tuple[str, ...] = ()  # forward, backward, optimizer
    first_step: int = 1
    last_step: int | None = None
    every: int = 1

    @property
    def has_sites(self) -> bool:
        """Whether it matters where a call is made."""
        return bool(self.modules or self.phases)

    def has_step(self, step: int) -> bool:
        """Whether calls of this step are wanted."""
        if step < self.first_step or (self.last_step is not None and step > self.last_step):
            return False
        return step == self.first_step or step % self.every == 0

    def has_operator(self, operator: str) -> bool:
        """Whether calls of aten::add_.Tensor are wanted."""
        if not self.operators:
            return True
        with_overload = operator.partition("::")[2]
        names = (operator, with_overload, with_overload.partition(".")[0])
        return any(fnmatchcase(name, pattern) for pattern in self.operators for name in names)

    def has_site(self, phase: str, model: str, module: str) -> bool:
        """Whether calls from there are wanted."""
        if self.phases and phase not in self.phases:
            return False
        if not self.modules or not model:
            return not self.modules
        # of the module and those around it, with the model's name before it or without
        parts = module.split(".")
        paths = [".".join(parts[: count + 1]) for count in range(len(parts))]
        paths += [model, *(f"{model}.{path}" for path in paths)]
        return any(fnmatchcase(path, pattern) for pattern in self.modules for path in paths)

    def describe(self) -> str:
        """In words, for the record's head; "" if it leaves nothing out."""
        chosen = {"modules": self.modules, "operators": self.operators, "phases": self.phases}
        parts = [f"{name} {', '.join(values)}" for name, values in chosen.items() if values]
        if self.every > 1:
            parts.append(f"one step in {self.every}, from step {self.first_step} on")
        elif self.last_step is not None:
            parts.append(f"steps {self.first_step} to {self.last_step}")
        elif self.first_step > 1:
            parts.append(f"steps from {self.first_step} on")
        return "; ".join(parts)

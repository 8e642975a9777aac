"""The operator recorder: every operator that the calling thread executes, with its tensors, as lines of JSON.

It is on for one optimizer step. It sees what PyTorch's dispatcher sees below autograd: the forward pass, the backward
pass (autograd hands the mode on to its own threads), the optimizer, DistributedDataParallel's reducer. A line is
written as soon as its operator has returned; nothing else is kept. `operators_trace` reads the file.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import torch

from torchferry.observe.modes import ObservingMode, has_compiled, unobserved
from torchferry.observe.operators import (
    COMMUNICATION,
    SKIPPED_NAMESPACES,
    base_name,
    is_random,
    leaves_uninitialised,
    overwrites,
    written_to,
)
from torchferry.observe.tensors import OVERWRITTEN, UNINITIALISED, consists_of_others
from torchferry.observe.where import Whereabouts
from torchferry.prove.facts import Fact, fact_of

FORMAT = 1
_NOBODY = -1  # no process has this number
# They say where or how a result is stored, not what it is.
_PLACING = frozenset({"device", "layout", "pin_memory", "non_blocking", "memory_format", "generator"})


class OperatorRecorder:
    """Records the operators of this thread into a file, from start() to stop()."""

    def __init__(self, file: str | Path) -> None:
        self._path = Path(file)
        self._mode: _Mode | None = None

    def start(self) -> None:
        """From now on; does nothing if it is recording already."""
        if self._mode is None:
            self._mode = _Mode(_Lines(self._path))
            self._mode.where.watch()
            self._mode.switch_on()

    def stop(self) -> None:
        """Until now; does nothing if it is not recording."""
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.switch_off()
            mode.where.unwatch()
            mode.lines.write({"end": True, "notes": [*mode.notes, *(["compiled"] if has_compiled() else [])]})
            mode.lines.close()


class _Lines:
    """The file. Each line goes out at once: a forked process has nothing of it left to write a second time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb", buffering=0)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.write({"format": FORMAT, "torch": torch.__version__})

    @property
    def are_wanted(self) -> bool:
        """Not in a forked process, and not after the end: a mode can't be taken off another thread's stack."""
        return os.getpid() == self._process

    def write(self, line: dict[str, Any]) -> None:
        """One line; if the disk is full, no more of them: the program must not fail for it."""
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            try:
                if self.are_wanted:
                    self._file.write(data)
            except OSError:
                self._process = _NOBODY

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._process = _NOBODY
            self._file.close()


class _Mode(ObservingMode):  # type: ignore[no-untyped-call]
    """Sees each operator before it runs."""

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self.lines = lines
        self.where = Whereabouts()
        self.notes: list[str] = []

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Write the call down and make it."""
        if not self.lines.are_wanted or getattr(func, "namespace", "") in SKIPPED_NAMESPACES:
            return func(*args, **kwargs)
        if not isinstance(func, torch._ops.OpOverload):
            self._note(f"not looked into: {func}")
            return func(*args, **kwargs)
        if any(map(consists_of_others, types)):
            return NotImplemented  # the type's own operators come next, and call those that we can see
        call = _Call(func, args, kwargs, self.where)
        with unobserved():
            call.before()
        result = func(*args, **kwargs)
        with unobserved():
            call.after(result)
        self.lines.write(call.line)
        return result

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


class _Call:
    """One call, and the line that it becomes."""

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: Whereabouts) -> None:
        self._func = func
        self._where = where
        self._values = _arguments(func, args, kwargs)
        self._base = base_name(func)
        self._written = written_to(func)
        self.line: dict[str, Any] = {"op": func.name(), **where.now()}
        if is_random(func):
            self.line["random"] = 1

    def before(self) -> None:
        """The arguments, as the operator finds them."""
        overwriting = overwrites(self._base)
        inputs: list[Any] = []
        others: list[Any] = []
        for position, (argument, value) in enumerate(self._values):
            is_lost = overwriting and argument.name in self._written
            unread = OVERWRITTEN if is_lost or getattr(argument, "is_out", False) else ""
            tensors = _tensors_in(value)
            for index, tensor in tensors:
                inputs.append([position, index, *self._fact(tensor, unread)])
            if not tensors and value is not None and argument.name not in _PLACING:
                others.append(_plain(value))
        self.line["in"] = inputs
        self.line["args"] = others

    def after(self, result: Any) -> None:
        """The results, and the arguments that the operator has written to."""
        if self._func.namespace in COMMUNICATION:
            self.line["out"], self.line["wrote"] = [], []  # it may be under way still
            return
        unread = UNINITIALISED if leaves_uninitialised(self._base) else ""
        written: dict[int, Fact] = {}
        wrote: list[Any] = []
        for position, (argument, value) in enumerate(self._values):
            if argument.name in self._written:
                for index, tensor in _tensors_in(value):
                    written[id(tensor)] = self._fact(tensor, unread)
                    wrote.append([position, index, *written[id(tensor)]])
        self.line["wrote"] = wrote
        self.line["out"] = [
            [position, index, *(written.get(id(value)) or self._fact(value, unread))]
            if isinstance(value, torch.Tensor)
            else [position, index, _plain(value)]
            for position, index, value in _results(result)
        ]

    def _fact(self, tensor: torch.Tensor, unread: str) -> Fact:
        return fact_of(tensor, self._where.role_of(tensor), unread)


def _arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The arguments that were given, with their descriptions, in the order of the operator's schema."""
    described = func._schema.arguments
    given = list(zip(described, args))  # noqa: B905  those after the given ones have their defaults
    given += [
        (argument, kwargs[argument.name]) for argument in described[len(args) :] if argument.name in kwargs
    ]
    return given


def _tensors_in(value: Any) -> list[tuple[int, torch.Tensor]]:
    """A tensor with -1, the tensors of a list with their positions, nothing for anything else."""
    if isinstance(value, torch.Tensor):
        return [(-1, value)]
    if isinstance(value, (list, tuple)):
        return [(index, item) for index, item in enumerate(value) if isinstance(item, torch.Tensor)]
    return []


def _results(result: Any) -> list[tuple[int, int, Any]]:
    """The results: position, position in a list or -1, and the result."""
    results = result if isinstance(result, (list, tuple)) else [result]
    found: list[tuple[int, int, Any]] = []
    for position, value in enumerate(results):
        if isinstance(value, (list, tuple)):
            found += [(position, index, item) for index, item in enumerate(value)]
        elif value is not None:
            found.append((position, -1, value))
    return found


def _plain(value: Any) -> Any:
    """A number, text or list of them for JSON; the text of anything else."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    text = str(value)
    return f"<{type(value).__name__}>" if " object at 0x" in text else text  # the same in every run

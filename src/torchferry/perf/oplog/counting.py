"""Adds up what the lines of logs say, in memory that grows with the number of different calls, not of lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from torchferry.perf.oplog.model import Compile, Operator, Process, Signature
from torchferry.perf.oplog.parsing import Forms, Header, Hit, decoded, number_of, seconds_of

MAX_SIGNATURES = 200_000  # about a kilobyte each


@dataclass
class _Seen:
    """Calls with the same text."""

    type: str
    text: str
    calls: int = 0
    compiles: int = 0
    cut: bool = False
    summarized: int = 0


@dataclass
class _Process:
    calls: int = 0
    first: bytes | None = None
    last: bytes | None = None


@dataclass
class _Compile:
    operator: str
    process: bytes | None
    call: int
    time: bytes | None
    seen: _Seen | None
    seconds: float | None = None


class Marks(NamedTuple):
    """What to search for in bytes, and which of them mean what."""

    texts: tuple[bytes, ...]
    compile: int  # those before it are calls of operators
    miss: int


class Counter:
    """The state while logs are read."""

    def __init__(self, forms: Forms, marks: Marks) -> None:
        self._forms = forms
        self._marks = marks
        self._seen: dict[bytes, _Seen] = {}
        self._processes: dict[bytes | None, _Process] = {}
        self._compiles: list[_Compile] = []
        self._running: dict[tuple[bytes | None, bytes | None, str], _Compile] = {}
        self._last: dict[tuple[bytes | None, bytes | None], _Seen | None] = {}
        self._misses: dict[str, int] = {}
        self._uncounted: dict[str, int] = {}

    def add(self, hit: Hit) -> None:
        """Count one line."""
        header = self._forms.header(hit.line)
        process = self._processes.get(header.process)
        if process is None:
            process = self._processes[header.process] = _Process(first=header.time)
        process.last = header.time or process.last
        if hit.mark < self._marks.compile:
            self._call(hit, header, process)
        elif hit.mark == self._marks.compile:
            self._compile(hit.line, header, process)
        else:
            kind = self._forms.missed(hit.line)
            if kind:
                self._misses[kind] = self._misses.get(kind, 0) + 1

    def _call(self, hit: Hit, header: Header, process: _Process) -> None:
        process.calls += 1
        text = hit.line[hit.at :]
        seen = self._seen.get(text)
        if seen is None:
            seen = self._remember(text, hit.line)
        self._last[header.process, header.thread] = seen
        if seen is not None:
            seen.calls += 1
            seen.summarized += self._forms.is_summarized(hit.line)

    def _remember(self, text: bytes, line: bytes) -> _Seen | None:
        first, _, rest = decoded(text).partition(",")
        kind = first.strip()
        if len(self._seen) >= MAX_SIGNATURES:
            self._uncounted[kind] = self._uncounted.get(kind, 0) + 1
            return None
        seen = self._seen[text] = _Seen(kind, rest[1:], cut=self._forms.is_cut(line))
        return seen

    def _compile(self, line: bytes, header: Header, process: _Process) -> None:
        found = self._forms.compiled(line)
        if found is None:
            return
        kind, seconds = found
        key = (header.process, header.thread, kind)
        running = self._running.pop(key, None) if seconds is not None else None
        if running is not None:
            running.seconds = seconds
            return
        last = self._last.get(key[:2])
        seen = last if last is not None and last.type == kind else None
        if seen is not None:
            seen.compiles += 1
        compile_ = _Compile(kind, header.process, process.calls, header.time, seen, seconds)
        self._compiles.append(compile_)
        if seconds is None:
            self._running[key] = compile_

    def processes(self) -> tuple[Process, ...]:
        """All of them, in the order of their first lines."""
        return tuple(
            Process(number_of(number), process.calls, seconds_of(process.first), seconds_of(process.last))
            for number, process in self._processes.items()
        )

    def results(self) -> Counted:
        """What was counted; recompiles are still to be told from the others."""
        by_text = {id(seen): self._signature(seen) for seen in self._seen.values()}
        compiles = tuple(
            Compile(
                entry.operator,
                number_of(entry.process),
                entry.call,
                seconds_of(entry.time),
                entry.seconds,
                None if entry.seen is None else by_text[id(entry.seen)],
            )
            for entry in self._compiles
        )
        signatures: dict[str, list[Signature]] = {}
        for seen in self._seen.values():
            signatures.setdefault(seen.type, []).append(by_text[id(seen)])
        return Counted(signatures, compiles, self._misses, self._uncounted)

    def _signature(self, seen: _Seen) -> Signature:
        details = self._forms.details(seen.text)
        return Signature(
            seen.text,
            details.inputs,
            details.outputs,
            details.attributes,
            seen.calls,
            seen.compiles,
            seen.cut,
            seen.summarized,
        )


@dataclass(frozen=True)
class Counted:
    """What was counted, by type of operator."""

    signatures: dict[str, list[Signature]]
    compiles: tuple[Compile, ...]
    misses: dict[str, int]
    uncounted: dict[str, int] = field(default_factory=dict)

    def operators(self, recompiles: Iterable[Compile], conversions: Iterable[str]) -> tuple[Operator, ...]:
        """One for each type, what takes most compile time, or most compiles, first."""
        compiles: dict[str, list[Compile]] = {}
        for compile_ in self.compiles:
            compiles.setdefault(compile_.operator, []).append(compile_)
        again: dict[str, int] = {}
        for compile_ in recompiles:
            again[compile_.operator] = again.get(compile_.operator, 0) + 1
        changing = frozenset(conversions)
        kinds = dict.fromkeys([*self.signatures, *compiles, *self.misses, *self.uncounted])
        found = [
            self._operator(kind, compiles.get(kind, []), again.get(kind, 0), kind in changing)
            for kind in kinds
        ]
        return tuple(
            sorted(found, key=lambda row: (-row.compile_seconds, -row.compiles, -row.calls, row.type))
        )

    def _operator(self, kind: str, compiles: list[Compile], again: int, is_conversion: bool) -> Operator:
        signatures = sorted(
            self.signatures.get(kind, ()), key=lambda row: (-row.compiles, -row.calls, row.text)
        )
        uncounted = self.uncounted.get(kind, 0)
        return Operator(
            kind,
            sum(signature.calls for signature in signatures) + uncounted,
            len(compiles),
            sum(compile_.seconds or 0.0 for compile_ in compiles),
            again,
            self.misses.get(kind, 0),
            tuple(signatures),
            is_conversion,
            uncounted,
        )

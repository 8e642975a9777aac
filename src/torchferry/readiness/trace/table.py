"""Reads the table that `key_averages().table()` prints: names, calls and times, but not who called whom."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torchferry.operators.names import CALLED_ELSEWHERE
from torchferry.operators.schemas import schemas
from torchferry.readiness.model import TRACE, Capture, OperatorSite, Phase
from torchferry.readiness.trace.calls import CountLevel, level_of
from torchferry.readiness.trace.events import Folding, Signatures, shapes_of
from torchferry.traces.chunks import no_trace
from torchferry.traces.names import is_optimizer_step, is_profiler_step, note_of, operator_of
from torchferry.traces.printed import NAME, Row, printed_nanoseconds, table_device, table_lines, table_rows

_SHAPES = "Input Shapes"
_CUT = "..."
_ATEN = "aten::"


def read_table(path: Path, pieces: Iterable[str]) -> Capture:
    """The operators of all tables in the file; other lines, such as a program's own output, are passed over."""
    rows = list(table_rows(table_lines(pieces)))
    if not rows:
        raise no_trace(path, "some other text")
    return _TableReader(path).capture(rows)


class _TableReader:
    """The rows of a file's tables."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signatures = Signatures()
        self._folding = Folding()
        self._notes = {"flat": True, "no_places": True, "no_overloads": True}
        self._steps = 0
        self._turns = 0
        self._host_time = 0

    def capture(self, rows: list[Row]) -> Capture:
        device = next((device for row in rows if (device := table_device(row))), "cpu")
        for row in rows:
            self._add(row, device)
        uses = self._folding.uses()
        if not uses:
            raise no_trace(self._path, "a table without PyTorch's operators")
        if not self._steps:
            self._notes["no_step"] = True
        if not self._signatures.has_shapes:
            self._notes["no_shapes"] = True
        return Capture(
            program=str(self._path),
            origin=TRACE,
            device=device,
            steps=self._steps or self._turns,
            seconds=self._host_time / 1e9,
            uses=uses,
            notes=tuple(self._notes),
        )

    def _add(self, row: Row, device: str) -> None:
        name, calls = row[NAME], int(row["calls"])
        self._host_time += printed_nanoseconds(row.get("host time", ""))
        if note := note_of(name):
            self._notes[note] = True
        self._steps += calls if is_optimizer_step(name) else 0
        self._turns += calls if is_profiler_step(name) else 0
        operator = self._operator(name)
        level = level_of(operator, None, device)
        if not operator or level is CountLevel.THROUGH:
            return
        # what the host chose to compute with has all the time: to its callers a table gives their own time only
        is_choice = operator.removeprefix(_ATEN) in CALLED_ELSEWHERE
        phase = Phase.BACKWARD if operator.endswith("_backward") else Phase.FORWARD
        signature = self._signatures.of(operator, shapes_of(row.get(_SHAPES, "")), device)
        time = printed_nanoseconds(row["host time"] if device == "cpu" else row.get(device, ""))
        self._folding.add(
            signature, OperatorSite(phase), calls, time, level is CountLevel.EXPANDED and not is_choice
        )

    def _operator(self, name: str) -> str:
        if not name.endswith(_CUT):
            return operator_of(name, of_old_profiler=True)
        start = name.removesuffix(_CUT).removeprefix(_ATEN)
        meant = [base for base in schemas() if base.startswith(start)]
        if len(meant) != 1 and name.startswith(_ATEN):
            self._notes["short_names"] = True
        return f"{_ATEN}{meant[0]}" if len(meant) == 1 else ""

"""Files of `ferry watch` without a training: small ones, whose every figure a test can say."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from torchferry.accuracy.file.writer import StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.accuracy.watch import rows

COUNT = 16  # elements of a tensor
BEGAN = 1_700_000_000.0


class WatchedFile:
    """Writes the rows of steps."""

    def __init__(self, path: Path, rank: int = 0, world: int = 1) -> None:
        header = RecordHeader(Kept.STATISTICS, "train.py", "cpu", "2.13.0", rank=rank, world=world)
        self.writer = StatisticsWriter(path, header)
        self._checksums = 0

    def put(
        self, step: int, row: str, module: str | None, name: str, size: float, nans: int = 0, node: str = ""
    ) -> None:
        """A row whose tensor has this root mean square, or value; a training's own has no module."""
        count = 1 if module is None else COUNT
        number, address = self.writer.row()
        self._checksums += 1
        shown = 0.0 if math.isnan(size) or count == nans else size
        figures = (count, nans, 0, 2 if count > 1 else 0, -shown if count > 1 else shown, shown, shown / 2 if count > 1 else shown, abs(shown))  # fmt: skip
        ctypes.memmove(address, ROW.pack(*figures, hash((row, module, name, size)) & 0xFFFF), ROW.size)
        model = "" if module is None else "Net"
        site = self.writer.site(row, "forward", model, module or "", "", node)
        tensor = TensorRecord(f"output/{name}", "float32", (count,), (1,), "cpu")
        self.writer.call(
            step, site, self.writer.signature((), encoded_tensors((), [tensor]), TensorRef(0)), [number]
        )

    def end_step(self, step: int, skipped: bool = False) -> None:
        """All rows of it are there."""
        known = ((rows.SECONDS, 0.5), (rows.TIME, BEGAN + step), (rows.SKIPPED, skipped))
        site = self.writer.site(rows.STEP, "optimizer", "", "", "", "")
        self.writer.call(step, site, self.writer.signature(known, encoded_tensors((), ()), None), [])


def watched(
    path: Path,
    steps: Iterable[int] = range(1, 21),
    loss: Callable[[int], float] = lambda step: 1 / step,
    gradient: Callable[[int], float] = lambda step: 2 / step,
    modules: tuple[str, ...] = ("body.first", "body.second"),
    nan_from: int = 1 << 30,
    rank: int = 0,
    world: int = 1,
    ends: bool = True,
) -> Path:
    """A run of a net with these modules, in one of which NaN begins at a step."""
    file = WatchedFile(path, rank, world)
    for step in steps:
        for module in modules:
            bad = 4 if module == modules[-1] and step >= nan_from else 0
            file.put(step, rows.MODULE, module, "output_0", 10 / step, bad, "Linear")
        file.put(step, rows.LOSS, None, "output_0", loss(step), int(math.isnan(loss(step))))
        for module in modules:
            file.put(step, rows.GRADIENT, module, "weight", gradient(step))
            file.put(step, rows.GRADIENT, module, "bias", gradient(step) / 2)
        file.put(step, rows.GRADIENT_NORM, None, "all", gradient(step))
        for module in modules:
            file.put(step, rows.PARAMETERS, module, "weight", 4.0)
            file.put(step, rows.UPDATE, module, "weight", 0.01)
        file.end_step(step)
    if ends:
        file.writer.close()
    return path

"""Whether the accuracy is shown, and is the original's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from torchferry.errors import FerryError
from torchferry.text import Text
from torchferry.zoo.delivery import EVIDENCE, ORIGINAL, PORT, Delivery
from torchferry.zoo.evidence.compare import Row, compare
from torchferry.zoo.evidence.model import Evidence
from torchferry.zoo.evidence.reading import read_evidence
from torchferry.zoo.model import Item, Status

ID = "evidence"
_ABSENT = Text("no {folder}/{name}.*", "没有 {folder}/{name}.*")
_ABSENT_WHY = Text(
    "the zoo wants proof that the accuracy is the original's: a log, CSV or JSON with the loss of each step, or figures",
    "要求证明精度达到原模型水平：每步 loss 或指标的日志、CSV 或 JSON",
)
_BAD = Text("{problem}", "{problem}")
_HOLDS = Text("{original} and {port}: {share} on average", "原模型 {original}，移植后 {port}：平均 {share}")
_WHY = Text("at most {limit}, as the zoo's own rule says", "不超过 {limit}（模型库规则）")
_LEVEL = Text("the original's level must be reached", "须达到原模型水平")
_SPEED = Text("speed, for information", "速度，供参考")
_ONE_SIDED = Text("only one of the two files has it", "只有一个文件中有")
_SIMULATED = Text("measured on a simulated device", "在模拟设备上测得")
_SIMULATED_WHY = Text("a reviewer wants figures of the real one", "评审需要真实设备的数据")


def check(delivery: Delivery) -> Iterator[Item]:
    """An item for each file that is missing, else one for each figure."""
    files = {name: _file(delivery, name) for name in (ORIGINAL, PORT)}
    for name, file in files.items():
        if file is None:
            found = _ABSENT.format(folder=EVIDENCE, name=name)
            yield Item(ID, name, Status.MISSING, found, _ABSENT_WHY)
    original, port = files[ORIGINAL], files[PORT]
    if original is None or port is None:
        return
    try:
        golden = read_evidence(original, of_original=True)
        mine = read_evidence(port)
    except FerryError as error:
        yield Item(ID, EVIDENCE, Status.MISSING, _BAD.format(problem=str(error)), _ABSENT_WHY)
        return
    yield from _rows(delivery, golden, mine)


def _file(delivery: Delivery, name: str) -> Path | None:
    found = [each for each in delivery.files if each.startswith(f"{EVIDENCE}/{name}.")]
    return delivery.root / found[0] if found else None


def _rows(delivery: Delivery, golden: Evidence, mine: Evidence) -> Iterator[Item]:
    relative = delivery.table.relative_error if delivery.tolerance is None else delivery.tolerance
    rows = compare(golden, mine, relative, delivery.table.absolute_error)
    if mine.simulated:
        yield Item(ID, PORT, Status.DOUBT, _SIMULATED, _SIMULATED_WHY)
    if not any(row.holds is not None for row in rows):
        yield Item(ID, EVIDENCE, Status.MISSING, _ONE_SIDED, _ABSENT_WHY)
    for row in rows:
        yield _item(row, relative)


def _item(row: Row, relative: float) -> Item:
    share = "?" if math.isnan(row.difference) and row.holds is None else f"{row.difference:+.2%}"
    found = _HOLDS.format(original=_shown(row.original), port=_shown(row.port), share=share)
    if row.holds is None:
        return Item(ID, row.name, Status.NOTE, found, _SPEED if row.is_speed else _ONE_SIDED)
    why = _WHY.format(limit=f"{relative:+.0%}") if row.steps else _LEVEL
    return Item(ID, row.name, Status.FINE if row.holds else Status.MISSING, found, why)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"

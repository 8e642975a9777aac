"""Whether the figures of the README are those of the logs."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.errors import FerryError
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.checks.evidence import read_both
from torchferry.zoo.delivery import READMES, Delivery
from torchferry.zoo.evidence import FigureRow, RunEvidence, compare
from torchferry.zoo.readme import DIFFERENCE, OFFSET, ORIGINAL, PORT, Figure, agrees, figures

ID = "results"
_AGAINST = Text("says {name} {shown}, but the logs say {logs}", "写的 {name} 是 {shown}；日志中是 {logs}")
_AGAINST_WHY = Text("every figure in the table must come from a run", "表中每个数值都必须来自真实运行")
_SWAPPED_WHY = Text(
    "this is the figure of the other run: the columns are swapped", "这是另一次运行的数值：两列写反了"
)
_UNSEEN = Text("says {name} {shown}, which is in no log", "写的 {name} {shown} 在日志中没有")
_FINE = Text("{count} figures, all matching the logs", "{count} 个数值，均与日志一致")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """An item for each figure that no run has shown, else one for each README."""
    try:
        golden, mine = read_both(delivery)
    except FerryError:
        return  # the check of the logs says so
    if golden.is_empty or mine.is_empty:
        return
    rows = compare(golden, mine, delivery.table.relative_error, delivery.table.absolute_error)
    known = {row.name: row for row in rows}
    for name in READMES.values():
        found = list(figures(delivery.read(name) or ""))
        wrong = [_item(name, each, known, golden, mine) for each in found]
        items = [item for item in wrong if item is not None]
        yield from items
        if found and not items:
            yield CheckResult(ID, f"{name}: results", Status.FINE, _FINE.format(count=len(found)))


def _item(
    name: str, figure: Figure, rows: dict[str, FigureRow], golden: RunEvidence, mine: RunEvidence
) -> CheckResult | None:
    subject, place = f"{name}: results", f"{name}:{figure.line}"
    row = rows.get(figure.name)
    if row is None:
        found = _UNSEEN.format(name=figure.name, shown=figure.shown)
        return CheckResult(ID, subject, Status.DOUBT, found, _AGAINST_WHY, place=place)
    values = _values(row, figure.kind, golden, mine)
    if any(agrees(figure, value) for value in values):
        return None
    logs = ", ".join(f"{value:.6g}" for value in dict.fromkeys(values)) or "-"
    what = f"{figure.name} {figure.kind}".strip()
    found = _AGAINST.format(name=what, shown=figure.shown, logs=logs)
    other = {ORIGINAL: PORT, PORT: ORIGINAL}.get(figure.kind)
    is_swapped = other and any(agrees(figure, value) for value in _values(row, other, golden, mine))
    return CheckResult(
        ID, subject, Status.MISSING, found, _SWAPPED_WHY if is_swapped else _AGAINST_WHY, place=place
    )


def _values(row: FigureRow, kind: str, golden: RunEvidence, mine: RunEvidence) -> list[float]:
    """What a figure may be: that of its run, or of either; a curve's at its end or its last one."""
    if kind == DIFFERENCE:
        return [row.difference]
    if kind == OFFSET:
        return [row.offset]
    runs = {ORIGINAL: (row.original, golden), PORT: (row.port, mine)}
    values = []
    for value, evidence in [runs[kind]] if kind in runs else runs.values():
        curve = evidence.curves.get(row.name)
        values += [value, *([curve.values[-1]] if curve else [])]
    return [value for value in values if value is not None]

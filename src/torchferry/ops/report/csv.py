"""CSV: one row for each use of an operator on each device, for spreadsheets and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry.ops.readiness import Readiness
from torchferry.ops.report.rows import Cell, call_cells, judgement_cells
from torchferry.ops.report.tables import Overview, label
from torchferry.report.safe import looks_like_formula, xml_text
from torchferry.text import Language

COLUMNS = (
    "device", "operator", "inputs", "strides", "arguments", "outputs", "dtypes", "calls", "seconds", "share", "phase",
    "module", "file", "line", "node", "inside", "support", "reason", "moved_bytes", "advice",
)  # fmt: skip


def to_csv(readinesses: Sequence[Readiness], language: Language) -> bytes:
    """The judgements as CSV in UTF-8, with the mark by which Excel knows it."""
    import csv
    import io

    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(COLUMNS)
    for cells in _rows(Overview(readinesses), language):
        writer.writerow([_cell(cells[name]) for name in COLUMNS])
    return output.getvalue().encode("utf-8-sig")


def _rows(overview: Overview, language: Language) -> Iterator[dict[str, Cell]]:
    """Every use on every device, those of the worst operators first; support and phase have the same names always."""
    for row in overview.operators:
        for readiness, judgements in zip(overview.readinesses, row.judgements, strict=True):
            for judgement in judgements:
                use = judgement.use
                cells = [*call_cells(use, overview, language), *judgement_cells(judgement, language)]
                yield {
                    **{name: value for name, _, value in cells},
                    "device": label(readiness),
                    "support": judgement.support.value,
                    "phase": use.site.phase.value,
                }


def _cell(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    text = xml_text(value)
    return "'" + text if looks_like_formula(text) else text

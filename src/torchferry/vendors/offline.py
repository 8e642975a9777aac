"""How an ONNX model becomes what a vendor's devices run without PyTorch; read only when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.model import Source
from torchferry.vendors.schema import OFFLINE_FILE, read_table


@dataclass(frozen=True)
class Conversion:
    """The vendor's tool, and the words that it is called with: {onnx}, {output}, {shapes}, {chip} ..."""

    tool: str
    folders: tuple[str, ...]  # where it is when it is not on PATH
    command: tuple[str, ...]
    fixed: tuple[str, ...]  # further words for a model without a free size
    dynamic: tuple[str, ...]  # for one whose first size alone is free: {batches}
    dynamic_other: tuple[str, ...]  # for one with other free sizes: {profiles}
    shape: str  # how an input's shape is written: {name}, {sizes}
    shape_separator: str  # " ": each is a word of its own
    free_size: str
    suffix: str  # of the output, as the tool is told
    results: tuple[str, ...]  # suffixes of the files that it writes
    chip: Text  # how to find out the name of the chip, where the tool must know it


@dataclass(frozen=True)
class OfflineTable:
    """What offline.toml says; None and nothing are: not known."""

    opset: int | None = None
    opset_min: int | None = None
    opset_max: int | None = None
    conversion: Conversion | None = None
    operators: frozenset[str] = frozenset()  # of ONNX, that the tool takes
    sources: tuple[Source, ...] = ()


def load_offline(vendor_folder: Path) -> OfflineTable:
    """Read offline.toml of a vendor folder; without one nothing is known."""
    file = vendor_folder / OFFLINE_FILE
    if not file.exists():
        return OfflineTable()
    data = read_table(file)
    chip = data.get("chip", "")
    conversion = Conversion(
        data.get("tool", ""),
        tuple(data.get("tool_folders", ())),
        tuple(data.get("command", ())),
        tuple(data.get("fixed", ())),
        tuple(data.get("dynamic", ())),
        tuple(data.get("dynamic_other", ())),
        data.get("shape", "{name}:{sizes}"),
        data.get("shape_separator", ";"),
        data.get("free_size", "-1"),
        data.get("suffix", ""),
        tuple(data.get("results", ())),
        Text(chip, data.get("chip_zh") or chip),
    )
    return OfflineTable(
        data.get("opset"),
        data.get("opset_min"),
        data.get("opset_max"),
        conversion if conversion.tool else None,
        frozenset(data.get("operators", ())),
        tuple(
            Source(row["name"], row.get("version", ""), row.get("path", ""))
            for row in data.get("sources", ())
        ),
    )

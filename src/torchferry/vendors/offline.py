"""How an ONNX model becomes what a vendor's devices run without PyTorch; read only when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.schema import OFFLINE_FILE, read_file


@dataclass(frozen=True)
class OfflineTable:
    """What offline.toml says: the vendor's tool and the words that it is called with. None and nothing are: not known."""

    opset: int | None = keys.number("11", None)
    opset_min: int | None = keys.number("11", None)
    opset_max: int | None = keys.number("15", None)
    tool: str = keys.text('"acmec"')
    tool_folders: tuple[str, ...] = keys.texts('["/usr/local/acme/bin"]')
    command: tuple[str, ...] = keys.texts('["--model={onnx}", "--output={output}", "--shapes={shapes}"]')
    fixed: tuple[str, ...] = keys.texts('["--static"]')
    dynamic: tuple[str, ...] = keys.texts('["--batches={batches}"]')
    dynamic_other: tuple[str, ...] = keys.texts('["--profiles={profiles}"]')
    shape: str = keys.text('"{name}:{sizes}"', r".*\{sizes\}.*", "{name}:{sizes}")
    shape_separator: str = keys.text('";"', default=";")
    free_size: str = keys.text('"-1"', default="-1")
    suffix: str = keys.text('".acme"')
    results: tuple[str, ...] = keys.texts('[".acme"]', r"\.\w+")
    chip: Text = keys.translated('"how to find out the name of the chip"')
    operators: frozenset[str] = keys.texts('["Conv", "Relu"]', r"\w+", frozenset(), value=frozenset)
    sources: tuple[keys.Source, ...] = keys.sources()

    @property
    def has_tool(self) -> bool:
        """Whether a tool is known that converts ONNX for the device."""
        return bool(self.tool)


def load_offline(vendor_folder: Path) -> OfflineTable:
    """Read offline.toml of a vendor folder; without one nothing is known."""
    return read_file(vendor_folder / OFFLINE_FILE, OfflineTable)

"""How an ONNX model becomes what a vendor's devices run without PyTorch; read only when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.keys import Source, number, sources, text, texts, translated
from torchferry.vendors.schema import OFFLINE_FILE, read_file


@dataclass(frozen=True)
class OfflineTable:
    """What offline.toml says: the vendor's tool and the words that it is called with. None and nothing are: not known."""

    opset: int | None = number("11", None)
    opset_min: int | None = number("11", None)
    opset_max: int | None = number("15", None)
    tool: str = text('"acmec"')
    tool_folders: tuple[str, ...] = texts('["/usr/local/acme/bin"]')
    command: tuple[str, ...] = texts('["--model={onnx}", "--output={output}", "--shapes={shapes}"]')
    fixed: tuple[str, ...] = texts('["--static"]')
    dynamic: tuple[str, ...] = texts('["--batches={batches}"]')
    dynamic_other: tuple[str, ...] = texts('["--profiles={profiles}"]')
    shape: str = text('"{name}:{sizes}"', r".*\{sizes\}.*", "{name}:{sizes}")
    shape_separator: str = text('";"', default=";")
    free_size: str = text('"-1"', default="-1")
    suffix: str = text('".acme"')
    results: tuple[str, ...] = texts('[".acme"]', r"\.\w+")
    chip: Text = translated('"how to find out the name of the chip"')
    operators: frozenset[str] = texts('["Conv", "Relu"]', r"\w+", frozenset(), value=frozenset)
    sources: tuple[Source, ...] = sources()

    @property
    def has_tool(self) -> bool:
        """Whether a tool is known that converts ONNX for the device."""
        return bool(self.tool)


def load_offline(vendor_folder: Path) -> OfflineTable:
    """Read offline.toml of a vendor folder; without one nothing is known."""
    return read_file(vendor_folder / OFFLINE_FILE, OfflineTable)

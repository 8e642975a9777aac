"""The keys of offline.toml: how an ONNX model becomes what the vendor's devices run without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.vendors.keys import SOURCES, Key, Kind, text

OFFLINE: Mapping[str, Key] = {
    "opset": Key(Kind.NUMBER, "11"),
    "opset_min": Key(Kind.NUMBER, "11"),
    "opset_max": Key(Kind.NUMBER, "15"),
    "tool": text('"acmec"'),
    "tool_folders": Key(Kind.TEXTS, '["/usr/local/acme/bin"]'),
    "command": Key(Kind.TEXTS, '["--model={onnx}", "--output={output}", "--shapes={shapes}"]'),
    "fixed": Key(Kind.TEXTS, '["--static"]'),
    "dynamic": Key(Kind.TEXTS, '["--batches={batches}"]'),
    "dynamic_other": Key(Kind.TEXTS, '["--profiles={profiles}"]'),
    "shape": text('"{name}:{sizes}"', r".*\{sizes\}.*"),
    "shape_separator": text('";"'),
    "free_size": text('"-1"'),
    "suffix": text('".acme"'),
    "results": Key(Kind.TEXTS, '[".acme"]', pattern=r"\.\w+"),
    "chip": text('"how to find out the name of the chip"'),
    "chip_zh": text('"the same in Chinese"'),
    "operators": Key(Kind.TEXTS, '["Conv", "Relu"]', pattern=r"\w+"),
    "sources": SOURCES,
}

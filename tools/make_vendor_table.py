"""Writes the table of targets in README.md and README.zh.md from the vendor data; `make docs` calls it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from torchferry.text import Language, Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[Language, str] = {"en": "README.md", "zh": "README.zh.md"}
BLOCK = re.compile(r"(<!-- vendors: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = Text(
    "| `--to` | Company | Device | Plugin | Backend | Same | Renamed | Missing | Unknown |",
    "| `--to` | 厂商 | 设备 | 插件 | 通信后端 | 同名 | 改名 | 没有 | 未知 |",
)
IN_TREE = Text("in PyTorch", "PyTorch 内置")
COUNTED = ("same", "renamed", "unsupported", "unknown")


def row(vendor: Vendor, language: Language) -> str:
    """One vendor."""
    plugin = f"`{vendor.plugin}`" if vendor.plugin else IN_TREE.in_language(language)
    counts = Counter(api.support.value for api in vendor.apis.values())
    numbers = " | ".join(str(counts[kind]) for kind in COUNTED)
    start = (
        f"| `{vendor.name}` | {vendor.company_name.in_language(language)} | `{vendor.device_type}` | {plugin}"
    )
    return f"{start} | `{vendor.dist_backend}` | {numbers} |"


def with_table(text: str, language: Language) -> str:
    """A page with its table made anew."""
    rows = [row(get_vendor(name), language) for name in vendor_names()]
    table = "\n".join([HEAD.in_language(language), "|---|---|---|---|---|---:|---:|---:|---:|", *rows])
    return BLOCK.sub(lambda match: f"{match.group(1)}{table}\n{match.group(2)}", text)


def main() -> int:
    """Write both pages."""
    for language, name in PAGES.items():
        page = ROOT / name
        page.write_text(with_table(page.read_text("utf-8"), language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Writes the tables of vendors from their data, in README.md, README.zh.md and docs/*/vendors/index.md; `make docs` calls it."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from torchferry.text import Language, Text
from torchferry.vendors.machine import MachineTable, Release, load_machine
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES: tuple[Language, ...] = ("en", "zh")
PAGES: dict[Language, tuple[str, ...]] = {
    "en": ("README.md", "docs/en/vendors/index.md"),
    "zh": ("README.zh.md", "docs/zh/vendors/index.md"),
}
IN_TREE = Text("in PyTorch", "PyTorch 内置")
UNKNOWN = Text("unknown", "未知")
COUNTED = ("same", "renamed", "unsupported", "unknown")
_VERSIONS = Text(
    "| `--to` | Company | Device | Plugin, newest release | PyTorch releases | Toolkit of the newest release |",
    "| `--to` | 厂商 | 设备 | 插件与最新版本 | PyTorch 版本 | 最新版本对应的工具包 |",
)
_COUNTS = Text(
    "| `--to` | Backend | Same | Renamed | Missing | Unknown |",
    "| `--to` | 通信后端 | 同名 | 改名 | 没有 | 未知 |",
)
_NONE_NEEDED = Text("none needed", "不需要")
Row = Callable[[Vendor, Language], str]


def version_row(vendor: Vendor, language: Language) -> str:
    """One vendor, with the releases that its data knows."""
    machine = load_machine(Path(vendor.folder))
    cells = [f"`{vendor.name}`", vendor.company_name.in_language(language), f"`{vendor.device_type}`"]
    cells += [
        _plugin(vendor, machine, language),
        _torches(machine, language),
        _toolkit(vendor, machine, language),
    ]
    return f"| {' | '.join(cells)} |"


def _plugin(vendor: Vendor, machine: MachineTable, language: Language) -> str:
    if not vendor.plugin:
        return IN_TREE.in_language(language)
    newest = machine.releases[0].plugin if machine.releases else UNKNOWN.in_language(language)
    return f"`{vendor.plugin}` {newest}"


def minor(version: str) -> str:
    """2.7 of 2.7.1."""
    return ".".join(version.split(".")[:2])


def _torches(machine: MachineTable, language: Language) -> str:
    """As 2.0, 2.4, 2.7 to 2.9: releases that follow each other are a range."""
    versions = sorted(
        {(int(release.torch.split(".")[0]), int(release.torch.split(".")[1])) for release in machine.releases}
    )
    runs = [
        [version for _, version in run]
        for _, run in groupby(enumerate(versions), key=lambda pair: (pair[1][0], pair[1][1] - pair[0]))
    ]
    if not runs:
        return UNKNOWN.in_language(language)
    to, comma = (" to ", ", ") if language == "en" else (" 至 ", "、")
    return comma.join(to.join(f"{a}.{b}" for a, b in dict.fromkeys((run[0], run[-1]))) for run in runs)


def _toolkit(vendor: Vendor, machine: MachineTable, language: Language) -> str:
    if not vendor.plugin and not machine.toolkit.name:
        return _NONE_NEEDED.in_language(language)
    if not machine.releases:
        return UNKNOWN.in_language(language)
    return toolkit_of(machine.releases[0], machine, language)


def toolkit_of(release: Release, machine: MachineTable, language: Language) -> str:
    """The toolkit that goes with a release, with its name."""
    if not release.toolkit:
        return UNKNOWN.in_language(language)
    return f"{machine.toolkit.name} {', '.join(release.toolkit)}".strip()


def count_row(vendor: Vendor, language: Language) -> str:
    """One vendor, with the numbers of CUDA names by what became of them."""
    counts = Counter(api.support.value for api in vendor.apis.values())
    numbers = " | ".join(str(counts[kind]) for kind in COUNTED)
    return f"| `{vendor.name}` | `{vendor.dist_backend}` | {numbers} |"


TABLES: dict[str, tuple[Text, str, Row]] = {
    "vendors": (_VERSIONS, "|---|---|---|---|---|---|", version_row),
    "apis": (_COUNTS, "|---|---|---:|---:|---:|---:|", count_row),
}


def with_tables(text: str, language: Language) -> str:
    """A page with its tables made anew."""
    for name, (head, ruler, row) in TABLES.items():
        rows = [row(get_vendor(vendor), language) for vendor in vendor_names()]
        table = "\n".join([head.in_language(language), ruler, *rows])
        block = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)
        text = block.sub(lambda match, table=table: f"{match[1]}{table}\n{match[2]}", text)  # type: ignore[misc]
    return text


def main() -> int:
    """Write the pages of both languages."""
    for language, names in PAGES.items():
        for name in names:
            page = ROOT / name
            page.write_text(with_tables(page.read_text("utf-8"), language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

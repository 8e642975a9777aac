"""A page for each vendor: releases, cards, limits, names and sources, from the vendor's folder of data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tools.make_vendor_table import UNKNOWN, toolkit_of

from torchferry.cli.vendors import INCOMPLETE, SECTIONS, labelled, sections
from torchferry.text import Language, Text
from torchferry.vendors.machine import MachineTable, Release, load_machine
from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, vendor_names

_INTRO = Text(
    "What TorchFerry knows about {company}, from the public sources at the end of this page. The vendor's hardware was "
    "not used. What is not listed is unknown. `ferry vendors {name}` prints the same.",
    "TorchFerry 所知的{company}信息，来自本页末尾列出的公开资料，没有使用该厂商的硬件。未列出的内容即为未知。"
    "`ferry vendors {name}` 显示相同内容。",
)
_FACTS = Text("At a glance", "概览")
_FACT_HEAD = Text("Fact | Value", "项目 | 值")
_RELEASES = Text("Supported versions", "支持的版本")
_RELEASE_HEAD = Text(
    "Plugin | PyTorch | Toolkit | Python | Architectures", "插件 | PyTorch | 工具包 | Python | 架构"
)
_NO_RELEASES = Text("No table of versions is known.", "没有已知的版本配套表。")
_GET = Text("Where to get it: {get}", "获取方式：{get}")
_PACKAGE = Text("Install the plugin:", "安装插件：")
_DRIVERS = Text("Drivers", "驱动")
_DRIVER_HEAD = Text("Toolkit | Driver | Source", "工具包 | 驱动 | 来源")
_KEY_HEAD = Text("Name | What is known", "名称 | 已知信息")
_IN_PLACE_OF_MANY = 12  # a longer table is folded


def pages(language: Language) -> dict[str, str]:
    """Path -> text of every vendor's page."""
    return {f"vendors/{name}.md": page(get_vendor(name), language) for name in vendor_names()}


def page(vendor: Vendor, language: Language) -> str:
    """The page of one vendor."""
    folder = Path(vendor.folder)
    company = vendor.company_name.in_language(language)
    lines = [
        f"# {company}",
        "",
        _INTRO.format(company=vendor.company_name, name=vendor.name).in_language(language),
        "",
    ]
    lines += _versions(load_machine(folder), language)
    lines += _titled(_FACTS, language, _table(_FACT_HEAD, labelled(vendor, language), language))
    for key, rows in sections(vendor, load_ops(folder), language):
        lines += _section(SECTIONS[key], [(f"`{name}`", text) for name, text in rows], language)
        if key == "unknown" and not vendor.apis_complete:
            lines += [INCOMPLETE.in_language(language), ""]
    return "\n".join(lines)


def _titled(title: Text, language: Language, lines: Sequence[str]) -> list[str]:
    return [f"## {title.in_language(language)}", "", *lines, ""]


def _section(title: Text, rows: list[tuple[str, str]], language: Language) -> list[str]:
    if not rows:
        return []
    table = _table(_KEY_HEAD, rows, language)
    if len(rows) > _IN_PLACE_OF_MANY:
        table = [f'??? abstract "{len(rows)}"', "", *(f"    {line}" for line in table)]
    return _titled(title, language, table)


def _table(head: Text, rows: Sequence[Sequence[str]], language: Language) -> list[str]:
    titles = head.in_language(language)
    ruler = "|".join("---" for _ in titles.split("|"))
    return [f"| {titles} |", f"|{ruler}|", *(f"| {' | '.join(map(_cell, row))} |" for row in rows)]


def _cell(text: str) -> str:
    """Text in a table, of which nothing is taken for Markdown but code."""
    if text.startswith("`") and text.endswith("`"):
        return text.replace("|", "\\|")
    return re.sub(r"([|*\[`]|(?<!\w)_|_(?!\w))", r"\\\1", text).replace("<", "&lt;")


def _versions(machine: MachineTable, language: Language) -> list[str]:
    rows = [_release(release, machine, language) for release in machine.releases]
    body = _table(_RELEASE_HEAD, rows, language) if rows else [_NO_RELEASES.in_language(language)]
    if machine.get.en:
        body += ["", _GET.format(get=machine.get).in_language(language)]
    if machine.plugin.get:
        body += ["", _PACKAGE.in_language(language), "", "```bash", machine.plugin.get, "```"]
    lines = _titled(_RELEASES, language, body)
    drivers = [(row.toolkit, ", ".join(row.driver), row.source) for row in machine.drivers]
    return lines + (_titled(_DRIVERS, language, _table(_DRIVER_HEAD, drivers, language)) if drivers else [])


def _release(release: Release, machine: MachineTable, language: Language) -> list[str]:
    def listed(values: Sequence[str]) -> str:
        return ", ".join(values) or UNKNOWN.in_language(language)

    toolkit = toolkit_of(release, machine, language)
    return [release.plugin, release.torch, toolkit, listed(release.python), listed(release.architectures)]

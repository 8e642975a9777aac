"""`ferry vendors`: the known accelerators, and everything that is known about one of them."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import check_reports, report_options
from torchferry.report.streams import reader_may_leave, write_text
from torchferry.text import Language, Text
from torchferry.vendors.keys import fields_of
from torchferry.vendors.model import Card, Limits, Saturation, Sparse, Support, Vendor
from torchferry.vendors.ops import Ops, load_ops
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.schema import meanings

if TYPE_CHECKING:
    from torchferry.report.terminal import Screen

COLUMNS = {
    "name": Text("Name", "名称"),
    "company": Text("Company", "厂商"),
    "device": Text("Device", "设备"),
    "plugin": Text("Plugin", "插件"),
    "backend": Text("Backend", "通信后端"),
    "has": Text("APIs", "接口"),
    "lacks": Text("Lacks", "不支持"),
    "ops": Text("Operators", "算子"),
}
COUNTS = ("has", "lacks", "ops")  # columns of numbers
TITLE = Text(
    "Known accelerators: how many torch.cuda APIs each has and lacks, and its operators with a kernel",
    "已知加速卡：各自支持和不支持的 torch.cuda 接口数，以及有 kernel 的算子数",
)
UNKNOWN = Text("unknown", "未知")
NONE = Text("none", "无")
IN_TREE = Text("in PyTorch", "PyTorch 内置")
PARTIAL = Text("{count} (partial)", "{count}（不完整）")
MORE = Text(
    "ferry vendors NAME shows everything about one of them", "ferry vendors 名称 可查看某一加速卡的全部信息"
)
INCOMPLETE = Text(
    "The API list is partial: a name that is not listed is unknown, not unsupported.",
    "接口列表不完整：未列出的名称为未知，而非不支持。",
)
YES = Text("yes", "有")
NO = Text("no", "缺")
COMPLETE = Text(
    "{vendor} can be included in TorchFerry: move its folder to src/torchferry/vendors/ and run `make docs`",
    "{vendor} 可收入 TorchFerry：把文件夹移到 src/torchferry/vendors/ 并运行 `make docs`",
)
LACKS = Text(
    "{vendor} works with --vendor-path as it is; to be included in TorchFerry, it lacks the {count} above",
    "{vendor} 可直接配合 --vendor-path 使用；若要收入 TorchFerry，还缺以上 {count} 项",
)

SECTIONS = {
    "limits": Text("Limits of a simulated device", "模拟设备的限制"),
    "cards": Text(
        "Other cards, for `ferry run --sim --card NAME`", "其他型号，用于 `ferry run --sim --card 名称`"
    ),
    "limits_sparse": Text("Operators on sparse tensors", "稀疏张量上的算子"),
    "limits_saturation": Text("Overflow gives the largest number", "溢出时取最大值（饱和）"),
    "limits_dtypes": Text("Narrowed data types", "被收窄的数据类型"),
    "dtypes": Text("Data types with limits", "受限的数据类型"),
    "env": Text("Environment variables", "环境变量"),
    "env_map": Text("CUDA variables and theirs", "CUDA 变量对照"),
    "renamed": Text("Renamed APIs", "改名的接口"),
    "unsupported": Text("Unsupported APIs", "不支持的接口"),
    "unknown": Text("Unknown APIs", "未知的接口"),
    "api_notes": Text("API limits", "接口限制"),
    "replacements": Text("Replacements", "替代方案"),
    "op_limits": Text("Operator limits", "算子限制"),
    "sources": Text("Sources", "来源"),
}


ABOUT = About(
    Text(
        "Everything shown comes from the vendor folders in `vendors/`, each fact with its public source.",
        "所有内容来自 `vendors/` 中的厂商文件夹，每条事实都注明公开来源。",
    ),
    (
        Example("ferry vendors", Text("List all vendors", "列出所有厂商")),
        Example("ferry vendors ascend", Text("Everything about one vendor", "某一厂商的全部信息")),
        Example(
            "ferry vendors --check my_vendor",
            Text("What your own vendor folder lacks", "自定义厂商文件夹缺少的内容"),
        ),
    ),
    exit_codes=(("1", Text("With --check: something is missing", "使用 --check 时：缺少内容")),),
    page="vendors/data.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry vendors`."""
    what = parser.either()
    text = Text(
        "Vendor to show, by name or device type (default: list all)",
        "要显示的厂商，可用名称或设备类型（默认：列出全部）",
    )
    what.add("vendor", nargs="?", metavar="VENDOR", text=text)
    text = Text(
        "List what the vendor folder DIR lacks to be included in TorchFerry; exit code 1 if anything",
        "列出厂商文件夹 DIR 若要收入 TorchFerry 还缺少什么；有缺少时退出码为 1",
    )
    what.add("--check", type=Path, metavar="DIR", text=text)
    options.add_format(parser, options.SUMMARY_FORMATS)
    options.add_outputs(parser, ".txt, .md, .csv, .xlsx, .html")
    options.add_vendor_path(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table of vendors, one vendor, or what one lacks."""
    language = options.language_of(args)
    if args.check:
        return _check(args.check, language, args.format == "json")
    names = [args.vendor] if args.vendor else vendor_names(args.vendor_path)
    vendors = [get_vendor(name, args.vendor_path) for name in names]
    tables = [load_ops(Path(vendor.folder)) for vendor in vendors]
    _write_files(args, vendors, tables)
    if args.format == "json":
        ops = {name: getattr(tables[0], name) for name in ("complete", "versions", "kernels", "limits")}
        full = {**dataclasses.asdict(vendors[0]), "ops": ops}
        shown = full if args.vendor else list(map(summary, vendors, tables))
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return 0
    from torchferry.report.formats import fitted
    from torchferry.report.terminal import Screen

    screen = Screen(fitted(report_options(args), sys.stdout))
    if args.vendor:
        _print_one(screen, vendors[0], tables[0], language)
    else:
        _print_table(screen, vendors, tables, language)
    with reader_may_leave():
        write_text(sys.stdout, screen.text())
    return 0


def _write_files(args: argparse.Namespace, vendors: list[Vendor], tables: list[Ops]) -> None:
    if not args.output:
        return
    from torchferry.cli.vendor_pages import REPORTS, VendorListing

    check_reports(REPORTS, args.output)
    for path in args.output:
        listing = VendorListing(tuple(vendors), tuple(tables), bool(args.vendor))
        REPORTS.write(listing, path, report_options(args))


def _check(path: Path, language: Language, as_json: bool) -> int:
    """Print the demands on a vendor that is included in TorchFerry, and what to write where one is not met."""
    from torchferry.vendors.checklist import DEMANDS, Folder

    folder = Folder(path)
    rows: list[dict[str, Any]] = []
    for demand in DEMANDS:
        write = [f"{file}: {text.in_language(language)}" for file, text in demand.lacking(folder)]
        rows.append({"demand": demand.title.in_language(language), "met": not write, "write": write})
    count = sum(len(row["write"]) for row in rows)
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return int(count > 0)
    for row in rows:
        print(f"{(YES if row['met'] else NO).in_language(language):4}{row['demand']}")
        for line in row["write"]:
            print(f"      {line}")
    verdict = LACKS if count else COMPLETE
    print(verdict.format(vendor=folder.vendor.name, count=count).in_language(language))
    return int(count > 0)


def summary(vendor: Vendor, ops: Ops) -> dict[str, Any]:
    """What the table of vendors shows about one of them."""
    counts = Counter(api.support for api in vendor.apis.values())
    source = vendor.sources[0] if vendor.sources else None
    return {
        "name": vendor.name,
        "company": vendor.company,
        "device": vendor.device_type,
        "plugin": vendor.plugin,
        "backend": vendor.dist_backend,
        "apis": {support.value: counts[support] for support in Support},
        "apis_complete": vendor.apis_complete,
        "ops": len(ops.kernels),
        "ops_complete": ops.complete,
        "source": f"{source.name} {source.version}".strip() if source else "",
    }


def has_and_lacks(vendor: Vendor) -> tuple[int, int]:
    """How many torch.cuda APIs the vendor has, by the same or another name, and how many it lacks."""
    counts = Counter(api.support for api in vendor.apis.values())
    return counts[Support.SAME] + counts[Support.RENAMED], counts[Support.UNSUPPORTED]


def _print_table(screen: Screen, vendors: list[Vendor], tables: list[Ops], language: Language) -> None:
    from torchferry.report.terminal import empty_table, plain

    table = empty_table()
    for column, text in COLUMNS.items():
        is_number = column in COUNTS
        table.add_column(
            plain(text.in_language(language)),
            justify="right" if is_number else "left",
            no_wrap=is_number or column in ("name", "device", "plugin"),
            overflow="fold",
        )
    for vendor, ops in zip(vendors, tables, strict=True):
        has, lacks = has_and_lacks(vendor)
        table.add_row(
            vendor.name,
            vendor.company_name.in_language(language),
            vendor.device_type,
            vendor.plugin or IN_TREE.in_language(language),
            vendor.dist_backend,
            str(has),
            str(lacks),
            ops_count(ops).in_language(language),
        )
    screen.part(plain(TITLE.in_language(language), "bold"), "", table, "")
    screen.line(plain(MORE.in_language(language)))


def ops_count(ops: Ops) -> Text:
    """How many operators have a kernel, as far as the table tells."""
    count = str(len(ops.kernels))
    if ops.complete:
        return Text(count, count)
    return PARTIAL.format(count=count) if ops.kernels else UNKNOWN


def _print_one(screen: Screen, vendor: Vendor, ops: Ops, language: Language) -> None:
    from torchferry.report.terminal import plain

    rows = labelled(vendor, language)
    rows.append((COLUMNS["ops"].in_language(language), ops_count(ops).in_language(language)))
    screen.line(plain(vendor.name, "bold cyan"))
    _print_rows(screen, rows)
    for key, rows in sections(vendor, ops, language):
        if rows:
            screen.line("", plain(f"{SECTIONS[key].in_language(language)} ({len(rows)})", "bold"))
            _print_rows(screen, rows)
    if not vendor.apis_complete:
        screen.line("", plain(INCOMPLETE.in_language(language), "yellow"))


def _print_rows(screen: Screen, rows: list[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text as Plain

    grid = Table.grid(padding=(0, 2))
    for left, right in rows:
        grid.add_row(Plain("  " + left), Plain(right))
    screen.part(grid)


def labelled(record: Vendor | Limits, language: Language) -> list[tuple[str, str]]:
    """(label, value) of every fact that is one value."""
    known = meanings(type(record))
    labels = ((field, known[name].label) for field, name, _ in fields_of(type(record)))
    return [
        (label.in_language(language), _shown(record, field, language)) for field, label in labels if label
    ]


def _shown(record: Vendor | Limits | Sparse | Saturation, attribute: str, language: Language) -> str:
    value = getattr(record, attribute)
    if isinstance(value, Enum):
        value = value.value
    elif isinstance(value, bool):
        value = str(value).lower()
    elif isinstance(value, tuple):
        value = ", ".join(value)
    if attribute == "plugin" and not value:
        return IN_TREE.in_language(language)
    if value in ("", "unknown", None, 0):
        return UNKNOWN.in_language(language)
    return str(value)


def _rows(limit: Sparse | Saturation, language: Language) -> list[tuple[str, str]]:
    names = [field for field, _, _ in fields_of(type(limit)) if getattr(limit, field)]
    return [(name, _shown(limit, name, language)) for name in names]


def _facts_of(card: Card) -> Iterator[str]:
    if card.memory:
        yield card.memory
    if card.count:
        yield f"x {card.count}"
    if card.without:
        yield f"without {', '.join(card.without)}"
    if card.ranks:
        yield f"ranks {', '.join(card.ranks)}"
    yield f"({card.source})"


def sections(vendor: Vendor, ops: Ops, language: Language) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Key of SECTIONS -> its rows; a section without rows has nothing known."""
    none, unknown = NONE.in_language(language), UNKNOWN.in_language(language)
    by_support: dict[Support, list[tuple[str, str]]] = {support: [] for support in Support}
    for name, api in sorted(vendor.apis.items()):
        by_support[api.support].append((name, api.name if api.support is Support.RENAMED else api.basis))
    yield "dtypes", list(vendor.dtypes.items())
    yield "limits", [(label, text) for label, text in labelled(vendor.limits, language) if text != unknown]
    yield "cards", [(card.name, "; ".join(_facts_of(card))) for card in vendor.cards]
    yield "limits_sparse", _rows(vendor.limits.sparse, language)
    yield "limits_saturation", _rows(vendor.limits.saturation, language)
    narrowings = []
    for dtype, limit in vendor.limits.dtypes.items():
        facts = (f"{limit.narrowing.value} {limit.becomes}".rstrip(), " | ".join(limit.when), limit.message)
        narrowings.append((dtype, "; ".join(filter(None, facts))))
    yield "limits_dtypes", narrowings
    yield "env", list(vendor.env.items())
    yield "env_map", [(name, to or none) for name, to in vendor.env_map.items()]
    for support in (Support.RENAMED, Support.UNSUPPORTED, Support.UNKNOWN):
        yield support.value, by_support[support]
    yield "api_notes", list(vendor.api_notes.items())
    yield "replacements", [(row.cuda, row.use or unknown) for row in vendor.replacements]
    yield "op_limits", list(ops.limits.items())
    sources = dict.fromkeys((*vendor.sources, *ops.sources))
    yield "sources", [(source.name, f"{source.version}  {source.path}".strip()) for source in sources]

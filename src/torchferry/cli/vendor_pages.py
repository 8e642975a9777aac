"""Files of `ferry vendors -o FILE`: all vendors in a table, or everything about one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.cli import vendors as printed
from torchferry.report.formats import Options, Reports
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import Ops

_TITLE, _VENDORS = Text("Known accelerators", "已知加速卡"), Text("Vendors", "厂商")
_COUNT = Text("{count} accelerators", "{count} 种加速卡")
_ABOUT = Text("At a glance", "概览")
_NAME, _VALUE = Column(Text("name", "名称"), is_whole=True), Column(Text("value", "值"))


@dataclass(frozen=True)
class VendorListing:
    """Vendors and the operators of their devices; one that was asked for is shown in full."""

    vendors: tuple[Vendor, ...]
    tables: tuple[Ops, ...]
    is_one: bool


REPORTS: Reports[VendorListing] = Reports(page=f"{__name__}:page_of")


def page_of(listing: VendorListing, options: Options) -> Page:
    """A row for each vendor, or a table for each kind of fact about one."""
    if listing.is_one:
        return _of_one(listing.vendors[0], listing.tables[0])
    columns = tuple(
        Column(head, is_number=name in printed.COUNTS, is_whole=name == "name")
        for name, head in printed.COLUMNS.items()
    )
    rows = tuple(_row(vendor, ops) for vendor, ops in zip(listing.vendors, listing.tables, strict=True))
    count = _COUNT.format(count=len(rows))
    return Page(
        _TITLE, ((count, ""), (printed.TITLE, "")), (Table(_VENDORS, columns, rows),), (printed.MORE,)
    )


def _row(vendor: Vendor, ops: Ops) -> tuple[Cell, ...]:
    has, lacks = printed.has_and_lacks(vendor)
    cells = {
        "name": Cell(vendor.name, is_code=True),
        "company": Cell(vendor.company_name),
        "device": Cell(vendor.device_type, is_code=True),
        "plugin": Cell(vendor.plugin or printed.IN_TREE, is_code=bool(vendor.plugin)),
        "backend": Cell(vendor.dist_backend, is_code=True),
        "has": Cell(f"{has:,}"),
        "lacks": Cell(f"{lacks:,}"),
        "ops": Cell(printed.ops_count(ops), value=len(ops.kernels)),
    }
    return tuple(cells[name] for name in printed.COLUMNS)


def _of_one(vendor: Vendor, ops: Ops) -> Page:
    verdicts = [
        (Text(f"{vendor.name}: {vendor.company_name.en}", f"{vendor.name}：{vendor.company_name.zh}"), "")
    ]
    notes = () if vendor.apis_complete else (printed.INCOMPLETE,)
    return Page(Text(vendor.name, vendor.name), tuple(verdicts), tuple(_tables(vendor, ops)), notes)


def _tables(vendor: Vendor, ops: Ops) -> Iterator[Table]:
    english, chinese = printed.labelled(vendor, "en"), printed.labelled(vendor, "zh")
    facts = [
        (Cell(Text(name, other)), Cell(Text(value, said)))
        for (name, value), (other, said) in zip(english, chinese, strict=True)
    ]
    facts.append((Cell(printed.COLUMNS["ops"]), Cell(printed.ops_count(ops))))
    yield Table(_ABOUT, (_NAME, _VALUE), tuple(facts))
    pairs = zip(printed.sections(vendor, ops, "en"), printed.sections(vendor, ops, "zh"), strict=True)
    for (key, rows), (_, others) in pairs:
        cells = (
            (Cell(Text(left, other)), Cell(Text(right, said)))
            for (left, right), (other, said) in zip(rows, others, strict=True)
        )
        yield Table(printed.SECTIONS[key], (_NAME, _VALUE), tuple(cells))

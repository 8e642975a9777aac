"""Whether something of CUDA is left that the converter knows what to do with."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.convert.project import Plan, examine_project
from torchferry.convert.target import vendor_target
from torchferry.finding import Finding, Kind
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.model import Item, Status

ID = "leftovers"
_LEFT = Text(
    "still written for CUDA: {count}, the first: {first}", "仍为 CUDA 写法：{count} 处，第一处：{first}"
)
_LEFT_WHY = Text("`ferry convert --to {vendor}` changes them", "`ferry convert --to {vendor}` 可以修改")
_OPEN = Text("to be decided: {count}, the first: {first}", "需要人工决定：{count} 处，第一处：{first}")
_OPEN_WHY = Text("`ferry scan --to {vendor}` explains each", "`ferry scan --to {vendor}` 逐条说明")
_FINE = Text("nothing of CUDA is left", "没有遗留的 CUDA 写法")
_OPEN_KINDS = (Kind.TODO, Kind.UNSUPPORTED)


def check(delivery: Delivery) -> Iterator[Item]:
    """One item or two."""
    outcome = examine_project(delivery.root, Plan(vendor_target(delivery.vendor)))
    findings = [finding for each in outcome.outcomes for finding in each.findings]
    changes = [finding for finding in findings if finding.kind is Kind.CHANGE]
    # lines that are only added follow from the others
    changes = [finding for finding in changes if finding.before.strip()] or changes
    open_ones = [finding for finding in findings if finding.kind in _OPEN_KINDS]
    vendor = delivery.vendor.name
    if changes:
        yield _item(Status.MISSING, _LEFT, changes, _LEFT_WHY.format(vendor=vendor))
    if open_ones:
        yield _item(Status.DOUBT, _OPEN, open_ones, _OPEN_WHY.format(vendor=vendor))
    if not changes and not open_ones:
        yield Item(ID, "CUDA", Status.FINE, _FINE)


def _item(status: Status, text: Text, findings: list[Finding], why: Text) -> Item:
    first = findings[0]
    found = text.format(count=len(findings), first=first.before.strip()[:60])
    return Item(ID, "CUDA", status, found, why, f"{first.path}:{first.line}")

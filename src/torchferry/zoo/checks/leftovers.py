"""Whether something of CUDA is left that the converter knows what to do with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.target import vendor_target
from torchferry.finding import Finding, Kind
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.zoo.delivery import Delivery

ID = "leftovers"
_LEFT = Text(
    "still written for CUDA: {count}, the first: {first}", "仍为 CUDA 写法：{count} 处，第一处：{first}"
)
_LEFT_WHY = Text("`ferry convert --to {vendor}` changes them", "`ferry convert --to {vendor}` 可以修改")
_MIGRATED_WHY = Text(
    "{migration}, which the code imports, redirects them while it runs",
    "代码导入的 {migration} 会在运行时重定向",
)
_OPEN = Text("to be decided: {count}, the first: {first}", "需要人工决定：{count} 处，第一处：{first}")
_OPEN_WHY = Text("`ferry scan --to {vendor}` explains each", "`ferry scan --to {vendor}` 逐条说明")
_FINE = Text("nothing of CUDA is left", "没有遗留的 CUDA 写法")
_OPEN_KINDS = (Kind.TODO, Kind.UNSUPPORTED)


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """One item or two."""
    outcome = examine_project(delivery.root, Plan(vendor_target(delivery.vendor)))
    findings = [finding for each in outcome.outcomes for finding in each.findings]
    changes = [finding for finding in findings if finding.kind is Kind.CHANGE]
    # lines that are only added follow from the others
    changes = [finding for finding in changes if finding.before.strip()] or changes
    changes = [finding for finding in changes if not _is_one_of_two(delivery, finding)]
    open_ones = [finding for finding in findings if finding.kind in _OPEN_KINDS]
    vendor, migration = delivery.vendor.name, _migration(delivery)
    if changes and migration:
        yield _item(Status.NOTE, _LEFT, changes, _MIGRATED_WHY.format(migration=migration))
    elif changes:
        yield _item(Status.MISSING, _LEFT, changes, _LEFT_WHY.format(vendor=vendor))
    if open_ones:
        yield _item(Status.DOUBT, _OPEN, open_ones, _OPEN_WHY.format(vendor=vendor))
    if not changes and not open_ones:
        yield CheckResult(ID, "CUDA", Status.FINE, _FINE)


def _item(status: Status, text: Text, findings: list[Finding], why: Text) -> CheckResult:
    first = findings[0]
    found = text.format(count=len(findings), first=first.before.strip()[:60])
    return CheckResult(ID, "CUDA", status, found, why, place=f"{first.path}:{first.line}")


def _is_one_of_two(delivery: Delivery, finding: Finding) -> bool:
    """Whether a place of CUDA stands beside one of the vendor's, as in `if device == "cuda": ... elif "sdaa": ...`."""
    module = delivery.modules.get(finding.path)
    if module is None:
        return False
    around = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, (ast.If, ast.Assert, ast.Raise, ast.Expr, ast.Assign, ast.Return))
        and node.lineno <= finding.line <= (node.end_lineno or 0)
    ]
    return any(_names_vendor(node, delivery.vendor, finding.line) for node in around)


def _names_vendor(node: ast.AST, vendor: Vendor, line: int) -> bool:
    """Whether a statement names the vendor's device; of an `if`, only where it is asked which device it is."""
    if not isinstance(node, ast.If):
        return any(_is_vendors(each, vendor) for each in ast.walk(node))
    tests = list(_chain(node))
    if not any(_says_cuda(each) for test in tests for each in ast.walk(test)):
        return False
    in_body = any(_covers(part, line) for part in node.body)
    others: list[ast.AST] = [*(test for test in tests if test.lineno != line)]
    others += node.orelse if in_body else node.body
    return any(_is_vendors(each, vendor) for other in others for each in ast.walk(other))


def _chain(node: ast.If) -> Iterator[ast.expr]:
    """The tests of if, elif, elif ..."""
    yield node.test
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _chain(node.orelse[0])


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _is_vendors(node: ast.AST, vendor: Vendor) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.partition(":")[0] == vendor.device_type
    return isinstance(node, ast.Attribute) and node.attr == vendor.device_type


def _says_cuda(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.partition(":")[0] == "cuda"
    return isinstance(node, ast.Attribute) and node.attr == "cuda"


def _migration(delivery: Delivery) -> str:
    """The vendor's module that makes torch.cuda mean its device, where the code imports it."""
    for module in delivery.modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                named = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
            else:
                continue
            for migration in delivery.vendor.migrations:
                if migration in named:
                    return migration
    return ""

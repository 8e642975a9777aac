"""Whether something of CUDA is left that the converter knows what to do with."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.target import vendor_target
from torchferry.finding import Finding, Kind
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery, imported_modules

ID = "leftovers"
_LEFT = Text(
    "still written for CUDA: {count} places, first: {first}", "仍为 CUDA 写法：{count} 处，第一处：{first}"
)
_LEFT_WHY = Text("`ferry convert --to {vendor}` converts them", "`ferry convert --to {vendor}` 可以转换")
_MIGRATED_WHY = Text(
    "{migration}, which the code imports, redirects them at run time",
    "代码导入的 {migration} 会在运行时重定向",
)
_OPEN = Text("to decide: {count} places, first: {first}", "待决定：{count} 处，第一处：{first}")
_OPEN_WHY = Text("`ferry scan --to {vendor}` explains each", "`ferry scan --to {vendor}` 逐条说明")
_FINE = Text("no CUDA code left", "没有遗留的 CUDA 写法")
_OPEN_KINDS = (Kind.TODO, Kind.UNSUPPORTED)


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """A result for what the converter would change, and one for what is to be decided."""
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
    return any(_names_vendor(node, delivery.vendor.device_type, finding.line) for node in around)


def _names_vendor(node: ast.AST, vendor: str, line: int) -> bool:
    """Whether a statement names the vendor's device; of an `if`, only where it is asked which device it is."""
    if not isinstance(node, ast.If):
        return _names(node, vendor)
    tests, below = [node.test], node.orelse  # of if, elif, elif ...
    while len(below) == 1 and isinstance(below[0], ast.If):
        tests.append(below[0].test)
        below = below[0].orelse
    if not any(_names(test, "cuda") for test in tests):
        return False
    in_body = any(part.lineno <= line <= (part.end_lineno or 0) for part in node.body)
    others: list[ast.AST] = [*(test for test in tests if test.lineno != line)]
    others += node.orelse if in_body else node.body
    return any(_names(other, vendor) for other in others)


def _names(tree: ast.AST, device: str) -> bool:
    """Whether a device is named anywhere in a statement: as "sdaa:0", or as in torch.sdaa."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == device:
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.partition(":")[0] == device:
                return True
    return False


def _migration(delivery: Delivery) -> str:
    """The vendor's module that makes torch.cuda mean its device, where the code imports it."""
    for module in delivery.modules.values():
        for node, name in imported_modules(module.tree):
            named = {name, *(f"{name}.{alias.name}" for alias in node.names)}
            for migration in delivery.vendor.migrations:
                if migration in named:
                    return migration
    return ""

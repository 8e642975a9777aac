"""Shorthand for the tests of rules: convert a piece of source, and look at what came out."""

from __future__ import annotations

import re
import textwrap
from functools import cache

from torchferry.conversion.file import Conversion, FileJob, convert_text
from torchferry.conversion.rule import RuleSet, all_rules, prepared
from torchferry.conversion.target import Target, vendor_target
from torchferry.conversion.targets import keep_cuda_target, portable_target
from torchferry.finding import Finding, Kind
from torchferry.source.decode import decode
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

VENDORS = tuple(vendor_names())


@cache
def target(name: str) -> Target:
    """The target that a name stands for: a vendor's, `portable`, or `ascend+cuda` for --keep-cuda."""
    if name.endswith("+cuda"):
        return keep_cuda_target(get_vendor(name.removesuffix("+cuda")))
    return portable_target() if name == "portable" else vendor_target(get_vendor(name))


def run(source: str, to: str = "ascend", *options: str) -> Conversion:
    """Convert a module given as (indented) text with all rules."""
    rules = (rule for rule in all_rules() if not rule.option or rule.option in options)
    job = FileJob(target(to), RuleSet(prepared(rules, target(to))))
    conversion = convert_text(decode(textwrap.dedent(source).encode("utf-8")), "module.py", job)
    assert not conversion.failure, conversion.failure
    return conversion


def rewritten(source: str, to: str = "ascend", *options: str) -> str:
    """The converted text, without the line that loads the plugin; the source itself if nothing changed."""
    conversion = run(source, to, *options)
    text = conversion.new_text if conversion.new_text is not None else textwrap.dedent(source)
    prelude = target(to).prelude
    return (
        re.sub(rf"^[ \t]*{re.escape(prelude)}\n", "", text, count=1, flags=re.MULTILINE) if prelude else text
    )


def expression(source: str, to: str = "ascend", *options: str) -> str:
    """The converted form of one expression or statement after `import torch`."""
    text = rewritten(f"import torch\n{source}\n", to, *options)
    return text.removeprefix("import torch\n").removesuffix("\n")


def findings(source: str, to: str = "ascend", *options: str, rule: str = "") -> list[Finding]:
    """What was said beside the changes."""
    found = run(source, to, *options).findings
    return [item for item in found if item.kind is not Kind.CHANGE and item.rule.startswith(rule)]


def said(source: str, to: str = "ascend", *options: str, rule: str = "") -> list[tuple[str, str, str]]:
    """(rule, kind, text of the place) of everything said beside the changes, in order."""
    found = run(source, to, *options).findings
    return [
        (item.rule, item.kind.value, item.before)
        for item in found
        if item.kind is not Kind.CHANGE and item.rule.startswith(rule)
    ]


def said_of(source: str, to: str = "ascend", rule: str = "") -> list[tuple[str, str, str]]:
    """The same for one expression or statement after `import torch`."""
    return said(f"import torch\n{source}\n", to, rule=rule)


def said_with(source: str, *options: str, to: str = "ascend") -> list[tuple[str, str, str]]:
    """The same with opt-in rules on."""
    return said(f"import torch\n{source}\n", to, *options)


@cache
def vendor(name: str) -> Vendor:
    return get_vendor(name)

"""Shorthand for the tests of rules: convert a piece of source, and look at what came out."""

from __future__ import annotations

import textwrap
from functools import lru_cache

from torchferry.convert.file import Conversion, FileJob, convert_text
from torchferry.convert.portable import portable_target
from torchferry.convert.rule import all_rules
from torchferry.convert.site import ProjectFacts
from torchferry.convert.target import Target, vendor_target
from torchferry.finding import Finding, Kind
from torchferry.source.decode import decode
from torchferry.vendors.registry import get_vendor


@lru_cache(maxsize=None)
def target(name: str) -> Target:
    return portable_target() if name == "portable" else vendor_target(get_vendor(name))


def run(source: str, to: str = "ascend", *options: str, project: ProjectFacts | None = None) -> Conversion:
    """Convert a module given as (indented) text with all rules."""
    rules = tuple(rule for rule in all_rules() if not rule.option or rule.option in options)
    job = FileJob(target(to), rules, project or ProjectFacts(), frozenset(options))
    conversion = convert_text(decode(textwrap.dedent(source).encode("utf-8")), "module.py", job)
    assert not conversion.failure, conversion.failure
    return conversion


def rewritten(source: str, to: str = "ascend", *options: str, project: ProjectFacts | None = None) -> str:
    """The converted text, without the line that loads the plugin; the source itself if nothing changed."""
    conversion = run(source, to, *options, project=project)
    text = conversion.new_text if conversion.new_text is not None else textwrap.dedent(source)
    prelude = target(to).prelude
    return text.replace(f"{prelude}\n", "", 1) if prelude else text


def expression(source: str, to: str = "ascend", *options: str) -> str:
    """The converted form of one expression or statement after `import torch`."""
    text = rewritten(f"import torch\n{source}\n", to, *options)
    return text.removeprefix("import torch\n").removesuffix("\n")


def findings(source: str, to: str = "ascend", *options: str, rule: str = "") -> list[Finding]:
    """What was said beside the changes."""
    found = run(source, to, *options).findings
    return [item for item in found if item.kind is not Kind.CHANGE and item.rule.startswith(rule)]

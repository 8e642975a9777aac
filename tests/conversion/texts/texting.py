"""Shorthand for the tests of files other than Python: convert a text by its file name, and look at what came out."""

from __future__ import annotations

import textwrap

from tests.conversion.rewriting import target
from torchferry.conversion.file import Conversion, FileJob
from torchferry.conversion.rule import RuleSet, all_rules
from torchferry.conversion.texts.kinds import converter_of
from torchferry.source.decode import decode


def run(name: str, text: str | bytes, to: str = "ascend", ignore: tuple[str, ...] = ()) -> Conversion:
    """Convert a text, (indented) or bytes, as the file of this name."""
    data = textwrap.dedent(text).encode("utf-8") if isinstance(text, str) else text
    rules = tuple(
        rule for rule in all_rules() if not rule.option and not rule.id.startswith(ignore or ("-",))
    )
    convert = converter_of(name, data)
    if convert is None:
        return Conversion(())
    conversion = convert(decode(data), name, FileJob(target(to), RuleSet(rules)))
    assert not conversion.failure, conversion.failure
    return conversion


def rewritten(name: str, text: str, to: str = "ascend", ignore: tuple[str, ...] = ()) -> str:
    """The converted text; the text itself if nothing changed."""
    conversion = run(name, text, to, ignore)
    return textwrap.dedent(text) if conversion.new_text is None else conversion.new_text


def said(name: str, text: str, to: str = "ascend") -> list[tuple[str, str, str]]:
    """(rule, kind, text of the place) of everything said beside the changes, in order."""
    found = run(name, text, to).findings
    return [(item.rule, item.kind.value, item.before) for item in found if item.kind.value != "change"]


def messages(name: str, text: str, to: str = "ascend") -> str:
    """What was said beside the changes, in English, one after the other."""
    found = run(name, text, to).findings
    return "\n".join(item.message.en for item in found if item.kind.value != "change")

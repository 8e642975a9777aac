"""Shorthand for the tests of mixed precision: the pass alone, so that its result is still a program for CUDA."""

from __future__ import annotations

import textwrap

from tests.conversion.rewriting import target
from torchferry.conversion.file import Conversion, FileJob, convert_text
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.rule import RuleSet
from torchferry.conversion.rules.mixed_precision import RULE
from torchferry.conversion.settings import AmpForm, PassSettings
from torchferry.finding import Kind
from torchferry.source.decode import decode


def converted(source: str, form: AmpForm = AmpForm.TORCH, neighbours: Neighbours | None = None) -> Conversion:
    """What the pass makes of a module given as (indented) text."""
    job = FileJob(
        target("ascend"),
        RuleSet([RULE]),
        settings=PassSettings(amp=form),
        neighbours=neighbours or Neighbours(),
    )
    conversion = convert_text(decode(textwrap.dedent(source).encode("utf-8")), "module.py", job)
    assert not conversion.failure, conversion.failure
    return conversion


def amped(source: str, form: AmpForm = AmpForm.TORCH) -> str:
    """The new text; the old one if nothing changed."""
    new = converted(source, form).new_text
    return textwrap.dedent(source) if new is None else new


def check(before: str, after: str, form: AmpForm = AmpForm.TORCH) -> None:
    """Before and after, both indented as the test is."""
    assert amped(before, form) == textwrap.dedent(after)


def left(source: str, form: AmpForm = AmpForm.TORCH) -> list[tuple[str, str, str]]:
    """(kind, text of the place, message) of what is said about a module that is not changed."""
    conversion = converted(source, form)
    assert conversion.new_text is None
    return [
        (item.kind.value, item.before, item.message.en)
        for item in conversion.findings
        if item.kind is not Kind.CHANGE
    ]

"""One capture from those of several processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchferry.ops.model import Capture, Signature, Site, Use


def merged(captures: Sequence[Capture]) -> Capture:
    """The processes that trained, added up; helpers that called an operator or two only where nobody trained."""
    trained = [capture for capture in captures if capture.steps] or list(captures)
    first = trained[0]
    return replace(
        first,
        steps=max(capture.steps for capture in trained),
        seconds=max(capture.seconds for capture in trained),
        processes=len(trained),
        uses=_added(trained),
        modules=tuple(dict.fromkeys(module for capture in trained for module in capture.modules)),
        notes=tuple(dict.fromkeys(note for capture in trained for note in capture.notes)),
    )


def _added(captures: Sequence[Capture]) -> tuple[Use, ...]:
    if len(captures) == 1:
        return captures[0].uses
    found: dict[tuple[Signature, Site], Use] = {}
    for use in (use for capture in captures for use in capture.uses):
        key = (use.signature, use.site)
        before = found.get(key)
        found[key] = use if before is None else _sum(before, use)
    return tuple(found.values())


def _sum(one: Use, other: Use) -> Use:
    return replace(
        one,
        calls=one.calls + other.calls,
        seconds=one.seconds + other.seconds,
        varied=one.varied or other.varied,
    )

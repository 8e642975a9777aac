"""Whether a module moves models or images to a device, told from its bytes: parsing it to find out takes far longer."""

from __future__ import annotations

import re

_MODEL = rb"(?:model|net|network|backbone)"
_NAMED = rb"(?:model|net|network|backbone|images?|imgs?)"
_MOVE = rb"\.(?:to|cuda)\("
# The rest of a line that assigns a move, or that leaves a bracket open in which or behind which there may be one.
_MOVED = rb"(?:[^\n]*?" + _MOVE + rb"|[^\n]*[(\[{,\\][ \t]*(?:#[^\n]*)?\r?$)"
_NAMES = rb"^[ \t]*((?:[\w.]+[ \t]*,[ \t]*)*[\w.]+)[ \t]*(?:,[ \t]*)?=(?!=)"
_BY_NAME = re.compile(
    rb"(?im)\b" + _NAMED + _MOVE + rb"|^[^#'\"\n=]*\b" + _NAMED + rb"\b[^=\n]*=(?!=)" + _MOVED
)
_ASSIGNED = re.compile(rb"(?m)" + _NAMES + _MOVED)
_WITH_PARAMETERS = re.compile(rb"([\w.]+)\.(?:named_)?parameters\(")
_FED = re.compile(rb"([\w.]+)\(\s*([\w.]+)")
_IS_MODEL = re.compile(rb"(?i)(?:.*\.)?" + _MODEL + rb"\Z")


def moves_models_or_images(data: bytes) -> bool:
    """Whether something is moved that is called a model or images, has parameters, or is given to a model."""
    if _BY_NAME.search(data):
        return True
    moved = {name.strip() for names in _ASSIGNED.findall(data) for name in names.split(b",")}
    if not moved:
        return False
    models = set(_WITH_PARAMETERS.findall(data))
    if not moved.isdisjoint(models):
        return True
    return any(
        given in moved and (called in models or _IS_MODEL.match(called))
        for called, given in _FED.findall(data)
    )

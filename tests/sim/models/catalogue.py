"""All models of the guide's table, in its order."""

from __future__ import annotations

from . import (
    attention,
    classification,
    faces,
    flow,
    generative,
    inception,
    language,
    recommendation,
    segmentation,
    text_detection,
    text_recognition,
)
from .entry import ModelEntry
from .names import GUIDE_NAMES

_FAMILIES = (
    attention,
    classification,
    faces,
    flow,
    generative,
    inception,
    language,
    recommendation,
    segmentation,
    text_detection,
    text_recognition,
)
_BY_NAME = {entry.name: entry for family in _FAMILIES for entry in family.ENTRIES}

CATALOGUE: dict[str, ModelEntry] = {name: _BY_NAME[name] for name in GUIDE_NAMES}

"""TF720 (opt-in): mixed precision for training steps that have none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.text import Text

_STEPS = (".backward(", "BCELoss", "binary_cross_entropy")
_MASKS = ("masked_fill", "fill_diagonal_")
_LARGE = re.compile(rb"\d[eE]\+?(?:[5-9]|\d\d)|\d{6}")  # may be more than half precision holds
_SAVED = re.compile(rb"(?i)(?:optim\w*|\bopt(?:_?\w)?)(?:\[[^\]\n]*\])*\.(?:load_)?state_dict\(")


def _restructure(context: FileContext) -> Iterator[Proposal]:
    from torchferry.conversion.amp.restructure import restructure  # few runs ask for it, and it is large

    return restructure(context)


def _is_worth(data: bytes) -> bool:
    """Of the modules that only save a state, or fill a mask: those that save an optimizer's, or with large numbers."""
    if any(word.encode() in data for word in _STEPS) or _SAVED.search(data) is not None:
        return True
    return any(word.encode() in data for word in _MASKS) and _LARGE.search(data) is not None


RULE = Rule(
    id="TF720",
    name="mixed-precision",
    summary=Text(
        "Adds autocast and GradScaler to training steps that have neither",
        "为没有混合精度的训练步加入 autocast 与 GradScaler",
    ),
    triggers=(*_STEPS, *_MASKS, ".state_dict("),
    option="amp",
    restructure=_restructure,
    worth=_is_worth,
)

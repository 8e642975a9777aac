"""TF720 (opt-in): mixed precision for training steps that have none."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import FileContext
from torchferry.text import Text


def _restructure(context: FileContext) -> Iterator[Proposal]:
    from torchferry.convert.amp.restructure import restructure  # few runs ask for it, and it is large

    return restructure(context)


RULE = register(
    Rule(
        id="TF720",
        name="mixed-precision",
        summary=Text(
            "autocast and GradScaler for training steps that have neither",
            "为尚无混合精度的训练步加入 autocast 与 GradScaler",
        ),
        triggers=(".backward(", ".state_dict(", "BCELoss", "binary_cross_entropy"),
        option="amp",
        restructure=_restructure,
    )
)

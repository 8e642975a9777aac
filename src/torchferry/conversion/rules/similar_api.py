"""TF730 (opt-in): calls for which the vendor's table has an equivalent: fused layers and optimizers, missing operators."""

from __future__ import annotations

from torchferry.conversion.rule import Rule
from torchferry.conversion.target import Target
from torchferry.text import Text


def _prepare(target: Target) -> Rule:
    from torchferry.conversion.similar.engine import with_table

    return with_table(RULE, target)


RULE = Rule(
    id="TF730",
    name="similar-api",
    summary=Text(
        "Replaces fused layers, fused optimizers and missing operators by an equivalent",
        "用等价写法替换融合层、融合优化器和缺失算子",
    ),
    triggers=(),
    option="similar",
    prepare=_prepare,
)

"""One name for operators that do the same on different devices."""

from __future__ import annotations

import re
from functools import cache

from torchferry.operators.equivalents import CALLED_ELSEWHERE, EQUIVALENTS
from torchferry.vendors.registry import get_vendor, vendor_names

# Names with a library or a way of computing in them; the first that fits.
_PATTERNS = (
    (re.compile(r".*convolution.*_backward.*|.*conv\dd\w*_backward.*"), "convolution_backward"),
    (re.compile(r"_?scaled_dot_product_\w*attention\w*_backward"), "attention_backward"),
    (re.compile(r"_?(?:flash|efficient|cudnn|fused)?_?attention_backward|.*fusion_attention_grad\w*"), "attention_backward"),
    (re.compile(r"_?scaled_dot_product_\w*attention\w*"), "attention"),
    (re.compile(r"_?(?:flash|efficient|cudnn|fused)_attention_forward|.*fusion_attention\w*"), "attention"),
    (re.compile(r".*batch_norm.*backward.*"), "batch_norm_backward"),
    (re.compile(r".*batch_norm.*"), "batch_norm"),
    (re.compile(r".*log_softmax_backward.*"), "log_softmax_backward"),
    (re.compile(r".*softmax_backward.*"), "softmax_backward"),
)  # fmt: skip


@cache
def canonical(operator: str) -> str:
    """convolution of aten::cudnn_convolution, of aten::miopen_convolution and of aten::convolution_overrideable."""
    base = operator.rpartition("::")[2].partition(".")[0]
    for prefix in _prefixes():
        base = base.removeprefix(prefix)
    for pattern, name in _PATTERNS:
        if pattern.fullmatch(base):
            return name
    base = CALLED_ELSEWHERE.get(base, base).partition(".")[0]
    base = EQUIVALENTS.get(base, (base,))[0].partition(".")[0]
    # in place or not, and whether a kernel's own name begins with an underscore, makes no other operator of it
    return base.strip("_") or base


@cache
def _prefixes() -> tuple[str, ...]:
    """npu_ of npu_add."""
    return tuple(sorted({f"{get_vendor(name).device_type}_" for name in vendor_names()} | {"cuda_"}))

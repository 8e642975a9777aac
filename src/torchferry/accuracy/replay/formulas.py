"""What operators compute that exist on one device only, or not in double precision: by operators that the CPU has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchferry.accuracy.replay import attention, recurrent

aten = torch.ops.aten
Arguments = Mapping[str, Any]
Formula = Callable[[Arguments], Any]


def formula_of(operator: str) -> Formula | None:
    """For aten::cudnn_batch_norm; None where the operator itself is called."""
    return _FORMULAS.get(operator)


def _batch_norm(given: Arguments) -> Any:
    factor = given.get("exponential_average_factor", given.get("momentum"))
    return *aten.native_batch_norm(
        given["input"], given.get("weight"), given.get("bias"), given.get("running_mean"),
        given.get("running_var"), given.get("training", True), factor, given.get("epsilon", given.get("eps")),
    ), None  # fmt: skip


def _batch_norm_backward(given: Arguments) -> Any:
    gradient = given.get("grad_output", given.get("grad_out"))
    return aten.native_batch_norm_backward(
        gradient, given["input"], given["weight"], given.get("running_mean"), given.get("running_var"),
        given.get("save_mean"), given.get("save_var"), True, given["epsilon"], [True, True, True],
    )  # fmt: skip


def _convolution(given: Arguments) -> Any:
    size = given["weight"].dim() - 2
    return aten.convolution(
        given.get("self", given.get("input")), given["weight"], given.get("bias"), given["stride"],
        given["padding"], given["dilation"], given.get("transposed", False),
        given.get("output_padding", [0] * size), given["groups"],
    )  # fmt: skip


def _transposed_convolution(given: Arguments) -> Any:
    return _convolution({**given, "transposed": True})


def _convolution_backward(given: Arguments) -> Any:
    return aten.convolution_backward(
        given["grad_output"], given["input"], given["weight"], [given["weight"].shape[0]], given["stride"],
        given["padding"], given["dilation"], given["transposed"], given["output_padding"], given["groups"],
        given["output_mask"],
    )  # fmt: skip


def _masked_scale(given: Arguments) -> Any:
    return given["self"] * given["mask"].to(given["self"].dtype) * given["scale"]


def _unscaled(given: Arguments) -> None:
    """A gradient scaler's division, in place. PyTorch has it for scales in single precision alone."""
    for gradient in given["self"]:
        if not bool(gradient.isfinite().all()):
            given["found_inf"].fill_(1.0)
        gradient.mul_(given["inv_scale"])


def _updated_scale(given: Arguments) -> Any:
    """The scale after a step, in place: smaller after an overflow, larger after so many steps without one."""
    scale, tracker = given["self"], given["growth_tracker"]
    if float(given["found_inf"]):
        scale.mul_(given["scale_backoff_factor"])
        tracker.zero_()
    elif int(tracker) + 1 == given["growth_interval"]:
        grown = scale * given["scale_growth_factor"]
        if bool(grown.to(torch.float32).isfinite()):
            scale.copy_(grown)
        tracker.zero_()
    else:
        tracker.add_(1)
    return scale


_FORMULAS: dict[str, Formula] = {
    "aten::cudnn_batch_norm": _batch_norm,
    "aten::miopen_batch_norm": _batch_norm,
    "aten::_batch_norm_with_update": _batch_norm,
    "aten::cudnn_batch_norm_backward": _batch_norm_backward,
    "aten::miopen_batch_norm_backward": _batch_norm_backward,
    "aten::cudnn_convolution": _convolution,
    "aten::miopen_convolution": _convolution,
    "aten::miopen_depthwise_convolution": _convolution,
    "aten::mkldnn_convolution": _convolution,
    "aten::convolution_overrideable": _convolution,
    "aten::_conv_depthwise2d": _convolution,
    "aten::conv_depthwise3d": _convolution,
    "aten::cudnn_convolution_transpose": _transposed_convolution,
    "aten::miopen_convolution_transpose": _transposed_convolution,
    "aten::convolution_backward_overrideable": _convolution_backward,
    "aten::_masked_scale": _masked_scale,
    "aten::_amp_foreach_non_finite_check_and_unscale_": _unscaled,
    "aten::_amp_update_scale_": _updated_scale,
    **attention.FORMULAS,
    **recurrent.FORMULAS,
}

"""What operators compute that exist on one device only, or not in double precision: by operators that the CPU has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from torchferry.accuracy.judge.model import CannotExecuteError

aten = torch.ops.aten
Arguments = Mapping[str, Any]
Formula = Callable[[Arguments], Any]


# Attention by its definition, and its gradients by autograd: for the kernels that only one device has.


def _refuse_dropout(given: Arguments) -> None:
    if given.get("dropout_p", 0.0):
        raise CannotExecuteError("attention with dropout: which elements it has dropped is not recorded")


def _defined(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, given: Arguments
) -> tuple[torch.Tensor, torch.Tensor]:
    """The result, and the logarithm of what each row of weights was divided by."""
    if key.shape[1] != query.shape[1]:  # several heads of the query share one of the key
        key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        value = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    scale = given.get("scale")
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = query @ key.transpose(-2, -1) * scale
    mask = next((given[name] for name in ("attn_mask", "attn_bias") if given.get(name) is not None), None)
    if mask is not None:
        weights = weights.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else weights + mask
    if given.get("is_causal"):
        seen = torch.ones(weights.shape[-2:], dtype=torch.bool).tril()
        weights = weights.masked_fill(~seen, -math.inf)
    total = torch.logsumexp(weights, -1)
    return torch.exp(weights - total.unsqueeze(-1)).nan_to_num(0.0) @ value, total


def _forward(given: Arguments) -> Any:
    _refuse_dropout(given)
    result, total = _defined(given["query"], given["key"], given["value"], given)
    return (result, total, *[None] * 7)


def _backward(given: Arguments) -> Any:
    _refuse_dropout(given)
    gradient = given.get("grad_out", given.get("grad_out_"))
    with torch.enable_grad():
        query, key, value = (given[name].detach().requires_grad_() for name in ("query", "key", "value"))
        result, _ = _defined(query, key, value, given)
        return (*torch.autograd.grad(result, [query, key, value], gradient), None)


_ATTENTION = [
    f"aten::_scaled_dot_product_{kind}"
    for kind in (
        "flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
        "fused_attention_overrideable",
    )
]  # fmt: skip


# Recurrent cells and layers by their definitions: for the kernels that only one device has.

_LSTM, _GRU = 2, 3  # cuDNN's numbers of the modes; 0 and 1 are plain cells
_LAYERS = {0: aten.rnn_relu.input, 1: aten.rnn_tanh.input, _GRU: aten.gru.input}


def _lstm_cell(given: Arguments) -> Any:
    gates = given["input_gates"] + given["hidden_gates"]
    for bias in ("input_bias", "hidden_bias"):
        if given.get(bias) is not None:
            gates = gates + given[bias]
    entering, forgetting, candidate, leaving = gates.chunk(4, -1)
    entering, forgetting, leaving = entering.sigmoid(), forgetting.sigmoid(), leaving.sigmoid()
    candidate = candidate.tanh()
    cell = forgetting * given["cx"] + entering * candidate
    return leaving * cell.tanh(), cell, torch.cat([entering, forgetting, candidate, leaving], -1)


def _lstm_cell_backward(given: Arguments) -> Any:
    entering, forgetting, candidate, leaving = given["workspace"].chunk(4, -1)
    squashed = given["cy"].tanh()
    none = torch.zeros_like(squashed)
    of_result = none if given.get("grad_hy") is None else given["grad_hy"]
    of_cell = none if given.get("grad_cy") is None else given["grad_cy"]
    of_cell = of_cell + of_result * leaving * (1 - squashed * squashed)
    of_gates = (
        of_cell * candidate * entering * (1 - entering),
        of_cell * given["cx"] * forgetting * (1 - forgetting),
        of_cell * entering * (1 - candidate * candidate),
        of_result * squashed * leaving * (1 - leaving),
    )
    gates = torch.cat(of_gates, -1)
    return gates, of_cell * forgetting, gates.sum(0) if given.get("has_bias") else None


def _gru_cell(given: Arguments) -> Any:
    entering, hidden = given["input_gates"], given["hidden_gates"]
    if given.get("input_bias") is not None:
        entering = entering + given["input_bias"]
        hidden = hidden + given["hidden_bias"]
    reset_in, update_in, new_in = entering.chunk(3, -1)
    reset_hidden, update_hidden, new_hidden = hidden.chunk(3, -1)
    reset, update = (reset_in + reset_hidden).sigmoid(), (update_in + update_hidden).sigmoid()
    new = (new_in + reset * new_hidden).tanh()
    last = given["hx"]
    return new + update * (last - new), torch.cat([reset, update, new, last, new_hidden], -1)


def _layers(given: Arguments) -> Any:
    if given.get("dropout") and given.get("train"):
        raise CannotExecuteError(
            "recurrent layers with dropout: which elements it has dropped is not recorded"
        )
    if given.get("batch_sizes"):
        raise CannotExecuteError("recurrent layers over packed sequences are not computed here")
    weights = _shaped(given)
    rest = (
        weights, given.get("weight_stride0", 4) == 4, given["num_layers"], 0.0, False, given["bidirectional"],
        given["batch_first"],
    )  # fmt: skip
    if given["mode"] == _LSTM:
        return aten.lstm.input(given["input"], [given["hx"], given["cx"]], *rest)
    return *_LAYERS[given["mode"]](given["input"], given["hx"], *rest), None


def _shaped(given: Arguments) -> list[torch.Tensor]:
    """The weights as matrices: parts of one piece of memory come as columns."""
    rows = {_LSTM: 4, _GRU: 3}.get(given["mode"], 1) * given["hidden_size"]
    per_layer = given.get("weight_stride0", 4)
    return [
        weight.reshape(rows, -1) if place % per_layer < 2 else weight.reshape(-1)
        for place, weight in enumerate(given["weight"])
    ]


def _network_backward(given: Arguments) -> Any:
    with torch.enable_grad():
        names = [name for name in ("input", "hx", "cx") if given.get(name) is not None]
        leaves = {name: given[name].detach().requires_grad_() for name in names}
        weights = [weight.detach().requires_grad_() for weight in _shaped(given)]
        results = _layers({**given, **leaves, "weight": weights})
        gradients = [given.get(name) for name in ("grad_output", "grad_hy", "grad_cy")]
        found = _gradients(results, gradients, [*leaves.values(), *weights])
    by_name = dict(zip(names, found, strict=False))
    of_weights = [
        gradient.reshape(weight.shape) if gradient is not None else None
        for gradient, weight in zip(found[len(names) :], given["weight"], strict=True)
    ]
    return by_name.get("input"), by_name.get("hx"), by_name.get("cx"), of_weights


def _one_layer(given: Arguments) -> Any:
    source = given["input"].flip(0) if given["reverse"] else given["input"]
    weights = [given[f"weight{number}"] for number in range(4 if given["has_biases"] else 2)]
    before = [given[name].reshape(1, *given[name].shape[-2:]) for name in ("hx_", "cx_")]
    output, *states = aten.lstm.input(
        source, before, weights, given["has_biases"], 1, 0.0, False, False, False
    )
    hidden, cell = (state.reshape(given["hx_"].shape) for state in states)
    return output.flip(0) if given["reverse"] else output, hidden, cell, None


def _one_layer_backward(given: Arguments) -> Any:
    named = {"input": "input", "weight0": "weight1", "weight1": "weight2", "weight2": "weight3", "weight3": "weight4",
             "hx_": "hx_", "cx_": "cx_tmp"}  # fmt: skip
    with torch.enable_grad():
        leaves = {name: given[theirs].detach().requires_grad_() for name, theirs in named.items()}
        *results, _ = _one_layer({**leaves, "reverse": given["reverse"], "has_biases": given["has_biases"]})
        gradients = [given.get(name) for name in ("grad_output", "grad_hy", "grad_cy")]
        return _gradients(results, gradients, list(leaves.values()))


def _gradients(results: Sequence[torch.Tensor], gradients: Sequence[Any], leaves: list[torch.Tensor]) -> Any:
    used = [
        (result, gradient.reshape(result.shape))
        for result, gradient in zip(results, gradients, strict=True)
        if gradient is not None
    ]
    outs, grads = zip(*used, strict=True)
    return torch.autograd.grad(outs, leaves, grads, allow_unused=True)


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


def _convolution_backward(given: Arguments) -> Any:
    return aten.convolution_backward(
        given["grad_output"], given["input"], given["weight"], [given["weight"].shape[0]], given["stride"],
        given["padding"], given["dilation"], given["transposed"], given["output_padding"], given["groups"],
        given["output_mask"],
    )  # fmt: skip


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


_BATCH_NORMS = ("aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::_batch_norm_with_update")
_CONVOLUTIONS = (
    "aten::cudnn_convolution", "aten::miopen_convolution", "aten::miopen_depthwise_convolution", "aten::mkldnn_convolution",
    "aten::convolution_overrideable", "aten::_conv_depthwise2d", "aten::conv_depthwise3d",
)  # fmt: skip
_FORMULAS: dict[str, Formula] = {
    **dict.fromkeys(_ATTENTION, _forward),
    **dict.fromkeys((f"{name}_backward" for name in _ATTENTION), _backward),
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_cudnn_rnn": lambda given: (*_layers(given), None, None),
    "aten::_cudnn_rnn_backward": _network_backward,
    "aten::mkldnn_rnn_layer": _one_layer,
    "aten::mkldnn_rnn_layer_backward": _one_layer_backward,
    **dict.fromkeys(_BATCH_NORMS, _batch_norm),
    "aten::cudnn_batch_norm_backward": _batch_norm_backward,
    "aten::miopen_batch_norm_backward": _batch_norm_backward,
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    "aten::cudnn_convolution_transpose": lambda given: _convolution({**given, "transposed": True}),
    "aten::miopen_convolution_transpose": lambda given: _convolution({**given, "transposed": True}),
    "aten::convolution_backward_overrideable": _convolution_backward,
    "aten::_masked_scale": lambda given: (
        given["self"] * given["mask"].to(given["self"].dtype) * given["scale"]
    ),
    "aten::_amp_foreach_non_finite_check_and_unscale_": _unscaled,
    "aten::_amp_update_scale_": _updated_scale,
}

"""Recurrent cells and layers by their definitions: for the kernels that only one device has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchferry.accuracy.replay.arguments import CannotExecuteError

aten = torch.ops.aten
Arguments = Mapping[str, Any]
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
    gates = torch.cat(
        [
            of_cell * candidate * entering * (1 - entering),
            of_cell * given["cx"] * forgetting * (1 - forgetting),
            of_cell * entering * (1 - candidate * candidate),
            of_result * squashed * leaving * (1 - leaving),
        ],
        -1,
    )
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
    """All layers of a network, as cuDNN is asked for them."""
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


def _network(given: Arguments) -> Any:
    return *_layers(given), None, None


def _network_backward(given: Arguments) -> Any:
    with torch.enable_grad():
        names = [name for name in ("input", "hx", "cx") if given.get(name) is not None]
        leaves = {name: given[name].detach().requires_grad_() for name in names}
        weights = [weight.detach().requires_grad_() for weight in _shaped(given)]
        results = _layers({**given, **leaves, "weight": weights})
        gradients = [given.get(name) for name in ("grad_output", "grad_hy", "grad_cy")]
        used = [
            (result, gradient)
            for result, gradient in zip(results, gradients, strict=True)
            if gradient is not None
        ]
        outs, grads = zip(*used, strict=True)
        found = torch.autograd.grad(outs, [*leaves.values(), *weights], grads, allow_unused=True)
    by_name = dict(zip(names, found, strict=False))
    of_weights = [
        gradient.reshape(weight.shape) if gradient is not None else None
        for gradient, weight in zip(found[len(names) :], given["weight"], strict=True)
    ]
    return by_name.get("input"), by_name.get("hx"), by_name.get("cx"), of_weights


def _one_layer(given: Arguments) -> Any:
    """oneDNN's: one layer in one direction."""
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
        used = [
            (result, gradient.reshape(result.shape))
            for result, gradient in zip(results, gradients, strict=True)
            if gradient is not None
        ]
        outs, grads = zip(*used, strict=True)
        return torch.autograd.grad(outs, list(leaves.values()), grads, allow_unused=True)


FORMULAS: dict[str, Callable[[Arguments], Any]] = {
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_cudnn_rnn": _network,
    "aten::_cudnn_rnn_backward": _network_backward,
    "aten::mkldnn_rnn_layer": _one_layer,
    "aten::mkldnn_rnn_layer_backward": _one_layer_backward,
}

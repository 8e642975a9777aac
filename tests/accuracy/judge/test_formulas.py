"""What is computed for operators of one device is what PyTorch's own operators give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchferry.accuracy.judge.execution import execute
from torchferry.accuracy.judge.formulas import formula_of
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Verdict
from torchferry.accuracy.model import Call, TensorRecord, TensorRef

from .recorded import record, seeded


def close(one: Any, other: Any) -> None:
    torch.testing.assert_close(one.detach(), other.detach())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_as_cudnn_is_asked_for_them(kind: Any) -> None:
    """Forward and backward, with weights that come as columns of one piece of memory."""
    with seeded():
        layers = kind(5, 6, num_layers=2, bidirectional=True).double()
        source = torch.randn(7, 3, 5, dtype=torch.float64, requires_grad=True)
    state = torch.zeros(4, 3, 6, dtype=torch.float64)
    states = (state, state) if kind is nn.LSTM else state
    result, _ = layers(source, states)
    gradients = torch.autograd.grad(result.square().sum(), [source, *layers.parameters()])
    given = {
        "input": source.detach(), "weight": [weight.detach().reshape(-1, 1) for weight in layers.parameters()],
        "weight_stride0": 4, "hx": state, "cx": state if kind is nn.LSTM else None, "hidden_size": 6,
        "mode": {nn.LSTM: 2, nn.GRU: 3, nn.RNN: 1}[kind], "num_layers": 2, "batch_first": False, "dropout": 0.0,
        "train": True, "bidirectional": True, "batch_sizes": [],
    }  # fmt: skip
    forward, backward = formula_of("aten::_cudnn_rnn"), formula_of("aten::_cudnn_rnn_backward")
    assert forward is not None and backward is not None
    close(forward(given)[0], result)
    of_input, _, _, of_weights = backward({**given, "grad_output": 2 * result.detach()})
    close(of_input, gradients[0])
    for found, right in zip(of_weights, gradients[1:], strict=True):
        close(found.reshape(right.shape), right)


def test_a_cell_that_only_gpus_have() -> None:
    with seeded():
        cell = nn.LSTMCell(4, 5).double()
        source, hidden, state = (
            torch.randn(3, size, dtype=torch.float64, requires_grad=True) for size in (4, 5, 5)
        )
    right = cell(source, (hidden, state))
    given = {
        "input_gates": functional.linear(source, cell.weight_ih), "hidden_gates": functional.linear(hidden, cell.weight_hh),
        "cx": state, "input_bias": cell.bias_ih, "hidden_bias": cell.bias_hh,
    }  # fmt: skip
    forward = formula_of("aten::_thnn_fused_lstm_cell")
    backward = formula_of("aten::_thnn_fused_lstm_cell_backward_impl")
    assert forward is not None and backward is not None
    result, cell_state, workspace = forward(given)
    close(result, right[0])
    close(cell_state, right[1])
    of_state, of_bias = torch.autograd.grad(right[0].sum() + right[1].sum(), [state, cell.bias_ih])
    ones = torch.ones_like(result)
    found = backward(
        {
            "grad_hy": ones,
            "grad_cy": ones,
            "cx": state,
            "cy": cell_state,
            "workspace": workspace,
            "has_bias": True,
        }
    )
    close(found[1], of_state)
    close(found[2], of_bias)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    with seeded():
        query, key, value = (
            torch.randn(2, 3, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)
        )
    right = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
    gradients = torch.autograd.grad(right.square().sum(), [query, key, value])
    given = {"query": query, "key": key, "value": value, "is_causal": causal, "dropout_p": 0.0}
    forward = formula_of("aten::_scaled_dot_product_flash_attention")
    backward = formula_of("aten::_scaled_dot_product_flash_attention_backward")
    assert forward is not None and backward is not None
    close(forward(given)[0], right)
    for found, expected in zip(backward({**given, "grad_out": 2 * right.detach()}), gradients, strict=False):
        close(found, expected)


def test_layers_that_the_cpu_computes_in_one_piece(tmp_path: Path) -> None:
    """Operators of oneDNN, which has no double precision, and attention: nothing stays unknown."""

    def program() -> None:
        with seeded():
            recurrent, attention = nn.LSTM(6, 8, num_layers=2), nn.MultiheadAttention(8, 2)
            states, _ = recurrent(torch.randn(5, 3, 6))
            attention(states, states, states, need_weights=False)[0].square().sum().backward()

    with record(tmp_path / "a.h5", program) as recorded:
        judge = Judge(recorded, None)
        verdicts = {call.operator: judge.judge(CallPair(call, None)).verdict for call in recorded.calls}
    assert "aten::mkldnn_rnn_layer_backward" in verdicts
    assert "aten::_scaled_dot_product_flash_attention_for_cpu_backward" in verdicts
    assert set(verdicts.values()) == {Verdict.NORMAL}


def test_what_only_another_device_has_is_computed_here_by_what_all_have() -> None:
    """cuDNN's batch norm, recorded on a GPU and replayed elsewhere."""
    with seeded():
        source, weight, bias, mean, variance = torch.randn(4, 3, 5), *torch.rand(4, 3)
    right_mean, right_variance = mean.clone(), variance.clone()
    right = torch.native_batch_norm(source, weight, bias, right_mean, right_variance, True, 0.1, 1e-5)
    tensors = {"input": source, "weight": weight, "bias": bias, "running_mean": mean, "running_var": variance}
    inputs = tuple(
        TensorRecord(f"input/{name}", "float32", tuple(each.shape), each.stride(), "cuda:0")
        for name, each in tensors.items()
    )
    given = [(name, TensorRef(place)) for place, name in enumerate(tensors)]
    options = [("training", True), ("exponential_average_factor", 0.1), ("epsilon", 1e-5)]
    outputs = tuple(replace(inputs[place], name=f"output/output_{at}") for at, place in enumerate((0, 1, 1)))
    call = Call(
        1, "aten::cudnn_batch_norm", 1, "forward", arguments=(*given, *options), inputs=inputs, outputs=outputs,
        results=tuple(map(TensorRef, range(3))),
    )  # fmt: skip
    found = execute(call, list(tensors.values()), "cpu", home="cuda")
    for one, other in zip(found, right, strict=True):
        close(one, other)
    with pytest.raises((NotImplementedError, RuntimeError)):  # at home it is the device's own affair
        execute(call, list(tensors.values()), "cpu", home="cpu")

"""A capture on the CPU shows what a device would see: its choices among operators, and which tensors it never gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from torchferry.readiness.capture.choices import as_on_device
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.model import Use

_LSTM = "aten::lstm.input"


def captured(step: Callable[[], object]) -> tuple[Use, ...]:
    mode = CapturingMode()
    mode.where.has_begun = True
    with as_on_device(), mode.switched_on():
        step()
    return mode.uses()


def on_device(step: Callable[[], object]) -> Counter[str]:
    """The operators that are not the host's and not within another one."""
    calls: Counter[str] = Counter()
    for use in captured(step):
        if not use.site.inside and not use.site.phase.is_on_host:
            calls[use.operator] += use.calls
    return calls


def test_nothing_stays_changed() -> None:
    before = (torch._VF.lstm, torch.nn.functional.one_hot)
    with as_on_device():
        assert torch.nn.functional.one_hot is not before[1]
    assert (torch._VF.lstm, torch.nn.functional.one_hot) == before
    x = torch.ones(3, requires_grad=True)
    assert "NativeDropout" not in str(nn.functional.dropout(x, 0.5).grad_fn)


@pytest.mark.parametrize(
    ("make", "operator"),
    [
        (lambda: nn.LSTM(3, 4), _LSTM),
        (lambda: nn.GRU(3, 4), "aten::gru.input"),
        (lambda: nn.RNN(3, 4), "aten::rnn_tanh.input"),
        (lambda: nn.LSTMCell(3, 4), "aten::lstm_cell"),
        (lambda: nn.GRUCell(3, 4), "aten::gru_cell"),
    ],
)
def test_a_recurrent_layer_is_one_operator(make: Callable[[], nn.Module], operator: str) -> None:
    layer, x = make(), torch.randn(*([2] if "cell" in operator else [5, 2]), 3)
    calls = on_device(lambda: layer(x))
    assert calls[operator] == 1
    assert not {name for name in calls if "mm" in name or "sigmoid" in name or "tanh" in name} - {operator}


def test_the_derivative_of_a_recurrent_layer_belongs_to_it() -> None:
    layer, x = nn.GRU(3, 4), torch.randn(5, 2, 3)
    uses = captured(lambda: layer(x)[0].square().mean().backward())
    backward = [use for use in uses if use.site.phase.value == "backward"]
    inside = {use.operator for use in backward if use.site.inside == "aten::gru.input"}
    assert {"aten::mm", "aten::sigmoid_backward", "aten::tanh_backward", "aten::mul.Tensor"} <= inside
    assert not {"aten::mm", "aten::sigmoid_backward"} & {
        use.operator for use in backward if not use.site.inside
    }


def test_a_packed_sequence_is_told_apart() -> None:
    layer, x = nn.LSTM(3, 4), torch.randn(5, 2, 3)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]))
    assert on_device(lambda: layer(packed))["aten::lstm.data"] == 1


def test_a_recurrent_layer_computes_what_it_did() -> None:
    layer, x = nn.LSTM(3, 4, 2), torch.randn(5, 2, 3)

    def gradients() -> list[Tensor | None]:
        layer.zero_grad()
        layer(x)[0].square().sum().backward()
        return [parameter.grad for parameter in layer.parameters()]

    plain = gradients()
    seen: list[Tensor | None] = []
    captured(lambda: seen.extend(gradients()))
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True) if a is not None and b is not None)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("train", [True, False])
def test_dropout_is_one_operator_where_it_does_something(p: float, train: bool) -> None:
    x, results = torch.ones(64), []
    calls = on_device(lambda: results.append(nn.functional.dropout(x, p, train)))
    assert calls["aten::native_dropout"] == (train and p == 0.5)
    assert set(results[0].tolist()) == ({1.0} if not train or p == 0 else {0.0} if p == 1 else {0.0, 2.0})


def test_dropout_within_attention_is_one_operator() -> None:
    x = torch.randn(2, 2, 5, 4, requires_grad=True)

    def step() -> None:
        nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5).sum().backward()

    calls = on_device(step)
    assert calls["aten::native_dropout"] == calls["aten::native_dropout_backward"] == 1
    assert "aten::bernoulli_.float" not in calls


def test_labels_are_not_looked_at() -> None:
    labels, made = torch.tensor([0, 2, 1]), []
    calls = on_device(lambda: made.append(nn.functional.one_hot(labels, 3)))
    assert made[0].equal(torch.eye(3, dtype=torch.int64)[labels])
    assert calls["aten::scatter_.value"] == 1
    assert "aten::aminmax" not in calls and "aten::min" not in calls


@pytest.mark.parametrize("fetch", [True, False])
def test_what_was_fetched_is_the_hosts(fetch: bool) -> None:
    x = torch.randn(4)
    calls = on_device(lambda: (x.cpu() if fetch else x).sort())
    assert ("aten::sort" in calls) is not fetch


def test_the_tensor_that_was_fetched_stays_the_devices() -> None:
    x = torch.randn(4)
    calls = on_device(lambda: (x.cpu(), x.sort()))
    assert calls["aten::sort"] == 1


def test_what_a_step_makes_without_a_device_is_the_hosts_until_it_is_moved() -> None:
    x = torch.randn(4)

    def step() -> Tensor:
        grid = torch.linspace(0, 1, 4).exp()
        return x * grid.to(x.device).sin()

    calls = on_device(step)
    assert "aten::linspace" not in calls and "aten::exp" not in calls
    assert calls["aten::sin"] == calls["aten::mul.Tensor"] == 1


def test_a_cast_moves_nothing() -> None:
    calls = on_device(lambda: torch.arange(4).to(torch.float32).exp())
    assert "aten::exp" not in calls


def test_what_a_step_makes_on_its_device_is_the_devices() -> None:
    x = torch.randn(4)
    calls = on_device(lambda: torch.arange(4, device=x.device).exp())
    assert calls["aten::arange"] == calls["aten::exp"] == 1


def _grid(length: int, device: str = "cpu") -> Tensor:
    """As libraries have it: the default is the host."""
    return (
        torch.stack([torch.arange(length, device=device), torch.ones(length, device=device).long()])
        .float()
        .exp()
    )


def test_what_is_made_with_the_name_of_the_cpu_is_the_hosts_if_it_is_moved() -> None:
    x = torch.randn(4)
    kept = _grid(4)
    calls = on_device(lambda: x * _grid(4).to(x.device).sin())
    assert (
        not {"aten::arange", "aten::ones", "aten::cat", "aten::stack", "aten::_to_copy", "aten::exp"}
        & calls.keys()
    )
    assert calls["aten::sin"] == calls["aten::mul.Tensor"] == 1
    assert kept.equal(_grid(4))


def test_what_is_made_with_the_name_of_the_cpu_is_the_devices_if_it_meets_its_tensors() -> None:
    x = torch.randn(4)

    def step() -> Tensor:
        grid = _grid(4, str(x.device))
        return (x * grid) + grid.to(x.device)

    calls = on_device(step)
    assert calls["aten::exp"] == calls["aten::arange"] == 1


def test_a_moved_tensor_says_nothing_of_others() -> None:
    x = torch.randn(4)
    calls = on_device(lambda: (_grid(4).to(x.device), _grid(4)))
    assert calls["aten::exp"] == 1


def test_what_was_moved_from_stays_the_hosts() -> None:
    x = torch.randn(4)

    def step() -> Tensor:
        grid = _grid(4)
        return x * grid.to(x.device) + grid.sin().to(x.device)

    assert "aten::sin" not in on_device(step)


def test_what_much_is_computed_with_was_on_the_device() -> None:
    x = torch.randn(4)

    def step() -> Tensor:
        value = torch.ones(4, device="cpu")
        for _ in range(300):
            value = value.sin()
        return value.to(x.device)

    assert on_device(step)["aten::sin"] == 300


def test_a_tensor_that_is_given_for_its_dtype_moves_nothing() -> None:
    x = torch.randn(4)
    assert on_device(lambda: torch.arange(4, device=x.device).exp().to(x))["aten::exp"] == 1


def test_what_pytorch_makes_beside_a_tensor_is_the_devices() -> None:
    x = torch.randn(5, 2, 3)
    calls = on_device(
        lambda: nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 5]), enforce_sorted=False)
    )
    assert calls["aten::arange.start"] == 1  # the permutation's inverse; the lengths are the host's


def test_the_counters_of_an_optimizer_are_the_hosts() -> None:
    parameter = nn.Parameter(torch.randn(3))
    parameter.grad = torch.ones(3)
    optimizer = torch.optim.Adam([parameter])
    steps = [
        use
        for use in captured(optimizer.step)
        if use.operator == "aten::_foreach_add_.Tensor" and not use.site.phase.is_on_host
    ]
    assert not steps


def test_a_mode_that_watches_does_not_change_what_repeat_does() -> None:
    x = torch.randn(3)
    assert on_device(lambda: x.repeat(4)) == {"aten::repeat": 1}

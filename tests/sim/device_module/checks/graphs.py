"""Graph capture: a capture computes nothing, a replay does again what was captured, into the same memory."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.sim.checking import Target
from tests.sim.device_module.names import lookup
from torchferry.vendors.model import Support


def _graph(target: Target) -> Any:
    """A graph of the vendor's, None where it has no graphs."""
    api = target.vendor.api("torch.cuda.CUDAGraph")
    return lookup(api.name)() if api.support is Support.RENAMED else None


def _model(target: Target) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1)).to(
        target.type
    )
    return model, torch.optim.Adam(model.parameters(), lr=0.1, capturable=True)


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor) -> Tensor:
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


def check_replays_train_as_the_steps_themselves_do(target: Target) -> None:
    graph = _graph(target)
    if graph is None:
        return
    batches = [torch.randn(5, 4) for _ in range(5)]
    model, optimizer = _model(target)
    expected = [_train(model, optimizer, x.to(target.type)).item() for x in batches]
    weights = [value.cpu() for value in model.state_dict().values()]

    model, optimizer = _model(target)
    losses = [_train(model, optimizer, batches[0].to(target.type)).item()]
    before = [value.clone() for value in model.state_dict().values()]
    x = torch.zeros(5, 4, device=target.type)
    with warnings.catch_warnings(record=True), target.module.graph(graph):
        loss = _train(model, optimizer, x)
        assert target.module.graphs.is_current_stream_capturing()
    assert not target.module.graphs.is_current_stream_capturing()
    for value, kept in zip(model.state_dict().values(), before, strict=True):
        assert torch.equal(value, kept)  # a capture changes nothing
    for batch in batches[1:]:
        x.copy_(batch)
        graph.replay()
        losses.append(loss.item())
    assert losses == expected
    for value, wanted in zip(model.state_dict().values(), weights, strict=True):
        assert torch.equal(value.cpu(), wanted)


def check_what_waits_for_the_device_is_refused_in_a_capture_which_ends_all_the_same(target: Target) -> None:
    graph = _graph(target)
    if graph is None:
        return
    value = torch.ones(2, device=target.type)
    for waits in (lambda: value.sum().item(), lambda: value.nonzero()):
        with (
            torch.no_grad(),
            pytest.raises(RuntimeError, match="stream is capturing"),
            target.module.graph(graph),
        ):
            value.add_(1)
            waits()
        assert not target.module.graphs.is_current_stream_capturing()
        assert value.tolist() == [1, 1]
    assert value.sum().item() == 2


def check_what_a_replay_could_not_repeat_is_refused(target: Target) -> None:
    graph = _graph(target)
    if graph is None:
        return
    x = torch.ones(1, 4, 4, device=target.type)
    for layer in (nn.LSTM(4, 2), nn.GRU(4, 2), nn.GroupNorm(2, 4)):
        layer.to(target.type)
        with (
            torch.no_grad(),
            pytest.raises(NotImplementedError, match="can't capture"),
            target.module.graph(graph),
        ):
            layer(x)
        layer(x)


def check_a_graph_is_captured_before_it_is_replayed(target: Target) -> None:
    graph = _graph(target)
    if graph is None:
        return
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.replay()
    value = torch.zeros(2, device=target.type)
    with torch.no_grad():
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="a graph capture is already in progress"):
            _graph(target).capture_begin()
        view = value[:1]
        view.add_(1)
        graph.capture_end()
    graph.replay()
    graph.replay()
    assert value.tolist() == [2, 0]
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        graph.replay()


def check_graphs_for_inference_only_are_said_to_be(target: Target) -> None:
    graph = _graph(target)
    if graph is None:
        return
    said = []
    for grad in (True, False):
        with warnings.catch_warnings(record=True) as warned, torch.set_grad_enabled(grad):
            warnings.simplefilter("always")
            with target.module.graph(graph):
                torch.ones(1, device=target.type)
        said.append(any("inference only" in str(one.message) for one in warned))
    note = target.vendor.api_notes.get("torch.cuda.CUDAGraph", "")
    assert said == ["inference_only" in note, False]


def check_graphed_callables_are_the_callables(target: Target) -> None:
    make = getattr(target.module, "make_graphed_callables", None)
    if make is not None:
        model = nn.Linear(2, 2).to(target.type)
        assert make(model, (torch.ones(1, 2, device=target.type),)) is model

"""Weights are cast once into the formats that a device's kernels take."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from torchferry.perf.affinity import cast_weights, formats
from torchferry.vendors.host import WeightFormats, load_host
from torchferry.vendors.registry import get_vendor


def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, groups=8), nn.Flatten(), nn.Linear(8, 2)
    )


def test_on_other_devices_nothing_is_done() -> None:
    built = model()
    before = [parameter.data_ptr() for parameter in built.parameters()]
    assert cast_weights(built) == 0
    assert [parameter.data_ptr() for parameter in built.parameters()] == before


def test_each_weight_once(monkeypatch: pytest.MonkeyPatch) -> None:
    casts: list[tuple[tuple[int, ...], int]] = []

    def cast(tensor: Tensor, number: int) -> Tensor:
        casts.append((tuple(tensor.shape), number))
        return tensor.clone()

    known = WeightFormats("vendor.cast", {"Conv2d": "4", "Linear": "29"}, "here")
    monkeypatch.setattr(formats, "_formats", lambda _: known)
    monkeypatch.setattr(formats, "_function", lambda _: cast)
    built = model()
    state = {name: value.clone() for name, value in built.state_dict().items()}
    assert cast_weights(built) == 2
    assert casts == [((8, 3, 3, 3), 4), ((2, 8), 29)]  # a grouped convolution stays
    assert all(torch.equal(value, state[name]) for name, value in built.state_dict().items())


def test_ascend_names_its_formats() -> None:
    known = load_host(Path(get_vendor("ascend").folder)).weight_formats
    assert known is not None and known.cast == "torch_npu.npu_format_cast"
    assert dict(known.modules) == {"Conv2d": "4", "Linear": "29"}

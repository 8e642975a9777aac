"""TF305: memory formats that a vendor's plugin refuses."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x.to(memory_format=torch.contiguous_format)", id="the usual one"),
        pytest.param("x.is_contiguous(memory_format=torch.channels_last)", id="a question"),
        pytest.param("x.clone(memory_format=torch.channels_last)", id="taken, and left out"),
        pytest.param("torch.zeros_like(x, memory_format=torch.channels_last)", id="taken as well"),
        pytest.param("x.to(memory_format=args.format)", id="not known"),
        pytest.param("channels_last = True", id="another name"),
    ],
)
def test_noop(source: str) -> None:
    assert said_of(source, "ascend", "TF305") == []


@pytest.mark.parametrize(
    "source",
    [
        "x = x.to(memory_format=torch.channels_last)",
        "x = x.contiguous(memory_format=torch.channels_last)",
        "x = torch.empty(1, 2, 3, 4, memory_format=torch.channels_last)",
        "x = x.half(memory_format=torch.channels_last_3d)",
        "from torch import channels_last\nmodel = model.to(memory_format=channels_last)",
    ],
)
def test_reported_where_the_plugin_raises(source: str) -> None:
    assert [kind for _, kind, _ in said_of(source, "ascend", "TF305")] == ["unsupported"]
    assert expression(source, "ascend") == source
    for other in ("cambricon", "tecorigin", "portable"):
        assert said_of(source, other, "TF305") == []

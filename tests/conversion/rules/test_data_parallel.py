"""TF204: torch.nn.DataParallel."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, said, said_of, vendor
from torchferry.vendors.model import Support


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("m = DataParallel(m)", id="the user's own class"),
        pytest.param("from mylib import DataParallel\nm = DataParallel(m)", id="another library's"),
        pytest.param("m = torch.nn.parallel.DistributedDataParallel(m)", id="DistributedDataParallel"),
        pytest.param("print('torch.nn.DataParallel')", id="a message"),
        pytest.param("# torch.nn.DataParallel(m)", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF204") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("m = torch.nn.DataParallel(m)", "torch.nn.DataParallel"),
        ("import torch.nn as nn\nm = nn.DataParallel(m, device_ids=[0])", "nn.DataParallel"),
        ("from torch.nn import DataParallel as DP\nm = DP(m)", "DP"),
        ("from torch.nn.parallel import DataParallel\nclass P(DataParallel): pass", "DataParallel"),
    ],
)
def test_recipe(name: str, source: str, place: str) -> None:
    unknown = name != "portable" and vendor(name).data_parallel is Support.UNKNOWN
    assert expression(source, name) == source
    assert said_of(source, name, "TF204") == [("TF204", "unknown" if unknown else "todo", place)]


def test_asking_for_the_type_is_harmless() -> None:
    source = "if isinstance(m, torch.nn.DataParallel): m = m.module"
    assert said_of(source) == [("TF204", "info", "torch.nn.DataParallel")]


def test_the_recipe_is_complete() -> None:
    (item,) = findings("import torch\nm = torch.nn.DataParallel(m)\n")
    for word in (
        "torchrun --nproc_per_node=N",
        "torch.npu.set_device",
        '"hccl"',
        "DistributedSampler",
        "device_ids",
        "ferry convert --distributed --main",
    ):
        assert word in item.message.en
        assert word in item.message.zh


def test_the_call_around_a_conversion() -> None:
    assert expression("m = torch.nn.DataParallel(m).cuda()") == "m = torch.nn.DataParallel(m).npu()"
    assert said("import torch\nm = torch.nn.DataParallel(m.cuda())\n", rule="TF204") != []

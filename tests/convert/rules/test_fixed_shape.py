"""TF702 (opt-in): batches of one shape and int32 labels."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import VENDORS, expression, vendor

_LOADER = "torch.utils.data.DataLoader"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("loader = DataLoader(data)", id="the user's own DataLoader"),
        pytest.param(f"loader = {_LOADER}(data, drop_last=True)", id="there already"),
        pytest.param(f"loader = {_LOADER}(data, batch_sampler=s)", id="a batch sampler decides"),
        pytest.param(f"loader = {_LOADER}(data, **options)", id="the options may say it"),
        pytest.param("# DataLoader(data)", id="a comment"),
        pytest.param("class MyDataLoader: pass", id="a class of the user's"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", "fixed_shape") == source


def test_off_unless_asked_for() -> None:
    source = f"loader = {_LOADER}(data)\ntarget = target.npu()"
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"x = {_LOADER}(data)", f"x = {_LOADER}(data, drop_last=True)"),
        (f"x = {_LOADER}(data, batch_size=4)", f"x = {_LOADER}(data, batch_size=4, drop_last=True)"),
        (f"x = {_LOADER}(data, drop_last=False)", f"x = {_LOADER}(data, drop_last=True)"),
        (
            f"x = {_LOADER}(\n    data,\n    batch_size=4,\n)",
            f"x = {_LOADER}(\n    data,\n    batch_size=4, drop_last=True,\n)",
        ),
        (f"x = {_LOADER}(f(a), (b))", f"x = {_LOADER}(f(a), (b), drop_last=True)"),
        (
            "from torch.utils.data import DataLoader as DL\nx = DL(data)",
            "from torch.utils.data import DataLoader as DL\nx = DL(data, drop_last=True)",
        ),
        ("target = target.cuda(gpu)", "target = target.npu(gpu).int()"),
        ("labels = labels.cuda()", "labels = labels.npu().int()"),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before, "ascend", "fixed_shape") == after


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    after = f"target = target.{vendor(name).tensor_method}().int()"
    assert expression("target = target.cuda()", name, "fixed_shape") == after

"""TF702 (opt-in): the last, smaller batch of a training loader is dropped."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import expression, said_with

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
        pytest.param(f"val_loader = {_LOADER}(data)", id="evaluation, by the variable"),
        pytest.param(f"loader = {_LOADER}(test_set, 4)", id="evaluation, by the dataset"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", "drop_last") == source


def test_off_unless_asked_for() -> None:
    source = f"loader = {_LOADER}(data)"
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
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before, "ascend", "drop_last") == after


def test_an_evaluation_keeps_its_samples_and_says_so() -> None:
    source = f"val_loader = {_LOADER}(data, batch_size=4)"
    assert said_with(source, "drop_last") == [("TF702", "info", f"{_LOADER}(data, batch_size=4)")]

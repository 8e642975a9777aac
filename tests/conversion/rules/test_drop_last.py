"""TF702 (opt-in): the last, smaller batch of a training loader is dropped."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, said_with

_LOADER = "torch.utils.data.DataLoader"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("loader = DataLoader(data)", id="the user's own DataLoader"),
        pytest.param(f"loader = {_LOADER}(data, drop_last=True)", id="there already"),
        pytest.param(f"loader = {_LOADER}(data, batch_sampler=s)", id="a batch sampler decides"),
        pytest.param(f"train = {_LOADER}(data, 4, True, None, s)", id="a batch sampler by its place"),
        pytest.param(f"train = {_LOADER}(data, batch_size=None)", id="the dataset makes the batches"),
        pytest.param(
            f"train = {_LOADER}(data, 4, True, None, None, 0, None, False, False)", id="given by its place"
        ),
        pytest.param(f"loader = {_LOADER}(data, 4, shuffle=False)", id="nothing says what it is for"),
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
        (f"train = {_LOADER}(data)", f"train = {_LOADER}(data, drop_last=True)"),
        (f"train = {_LOADER}(data, batch_size=4)", f"train = {_LOADER}(data, batch_size=4, drop_last=True)"),
        (f"train = {_LOADER}(data, drop_last=False)", f"train = {_LOADER}(data, drop_last=True)"),
        (
            f"train = {_LOADER}(\n    data,\n    batch_size=4,\n)",
            f"train = {_LOADER}(\n    data,\n    batch_size=4, drop_last=True,\n)",
        ),
        (f"train = {_LOADER}(f(a), (b))", f"train = {_LOADER}(f(a), (b), drop_last=True)"),
        (
            "from torch.utils.data import DataLoader as DL\ntrain = DL(data)",
            "from torch.utils.data import DataLoader as DL\ntrain = DL(data, drop_last=True)",
        ),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before, "ascend", "drop_last") == after


def test_an_evaluation_keeps_its_samples_and_says_so() -> None:
    source = f"val_loader = {_LOADER}(data, batch_size=4)"
    assert said_with(source, "drop_last") == [("TF702", "info", f"{_LOADER}(data, batch_size=4)")]


def test_what_nothing_tells_is_left_to_the_user() -> None:
    source = f"loader = {_LOADER}(data, batch_size=4, drop_last=False)"
    assert said_with(source, "drop_last") == [("TF702", "todo", source.removeprefix("loader = "))]


def test_who_shuffles_trains() -> None:
    source = f"loader = {_LOADER}(data, 4, shuffle=True)"
    assert (
        expression(source, "ascend", "drop_last")
        == f"loader = {_LOADER}(data, 4, shuffle=True, drop_last=True)"
    )


def test_one_call_for_training_and_evaluation_is_left_to_the_user() -> None:
    call = f"{_LOADER}(sets[x], 4, shuffle=True)"
    source = f"loaders = {{x: {call} for x in ['train', 'val']}}"
    assert said_with(source, "drop_last") == [("TF702", "todo", call)]
    assert expression(source, "ascend", "drop_last") == source

"""TF703 (opt-in): DataLoader without pinned memory."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression

_LOADER = "torch.utils.data.DataLoader"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(f"x = {_LOADER}(data)", id="not pinned"),
        pytest.param(f"x = {_LOADER}(data, pin_memory=False)", id="not pinned, said"),
        pytest.param("x = DataLoader(data, pin_memory=True)", id="the user's own DataLoader"),
        pytest.param("x = x.pin_memory()", id="a tensor's method"),
        pytest.param("pin_memory = True", id="a flag"),
        pytest.param("parser.add_argument('--pin_memory')", id="a command-line flag"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", "no_pin_memory") == source


def test_off_unless_asked_for() -> None:
    source = f"x = {_LOADER}(data, pin_memory=True)"
    assert expression(source) == source


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("value", ["True", "args.pin", "(a or b)", "not args.cpu"])
def test_turned_off(name: str, value: str) -> None:
    before = f"x = {_LOADER}(data, pin_memory={value}, num_workers=2)"
    after = f"x = {_LOADER}(data, pin_memory=False, num_workers=2)"
    assert expression(before, name, "no_pin_memory").replace("(False)", "False") == after

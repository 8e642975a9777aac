"""A vendor's other cards: chosen by name, with limits of their own."""

from __future__ import annotations

import pytest

from tests.vendors.test_cli_vendors import ferry_vendors
from torchferry.errors import VendorError
from torchferry.sim.environment import SimSettings, settings_for
from torchferry.vendors.model import Narrowing, Vendor
from torchferry.vendors.registry import card_names, get_vendor, vendor_names, with_card

ASCEND = get_vendor("ascend")
CARDS = [(vendor, card.name) for vendor in map(get_vendor, vendor_names()) for card in vendor.cards]


def test_the_typical_card_changes_nothing() -> None:
    assert with_card(ASCEND, None) is with_card(ASCEND, "") is ASCEND
    assert with_card(ASCEND, "ascend910b2") is ASCEND
    assert card_names(ASCEND)[0] == "Ascend910B2"


@pytest.mark.parametrize(("vendor", "name"), CARDS, ids=[name for _, name in CARDS])
def test_every_card_is_a_machine_of_its_own(vendor: Vendor, name: str) -> None:
    chosen = with_card(vendor, name.upper())
    assert chosen.limits.device_name == name != vendor.limits.device_name
    assert chosen.card is not None and chosen.card.source
    settings = settings_for(chosen)
    assert settings.card == name and settings.memory > 1 << 30
    assert SimSettings.read({"TORCHFERRY_SIM": settings.encode()}) == settings
    assert with_card(vendor, settings.card) == chosen


def test_an_older_card() -> None:
    card = with_card(ASCEND, "Ascend910A")
    assert card.limits.saturation.applies(card.limits.device_name, {})
    assert not ASCEND.limits.saturation.applies(ASCEND.limits.device_name, {})
    assert card.limits.dtypes["bfloat16"].narrowing is Narrowing.REFUSED
    assert card.amp_dtypes == ("float16",) and card.lacks == ("bfloat16",)
    assert card.limits.device_memory == "32GiB"
    assert card.limits.missing_operator is ASCEND.limits.missing_operator


def test_a_card_of_which_nothing_is_known() -> None:
    with pytest.raises(VendorError) as error:
        with_card(ASCEND, "Ascend1")
    assert "known: Ascend910B2, Ascend910A" in str(error.value) and "ferry vendors ascend" in str(error.value)
    with pytest.raises(VendorError, match="leave --card out"):
        with_card(get_vendor("intel"), "Max1100")


def test_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry_vendors("cambricon", "--lang", "en") == 0
    shown = capsys.readouterr().out
    assert "Other cards" in shown
    assert "23308MiB; without bfloat16" in shown

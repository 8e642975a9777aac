"""A vendor's other cards: what is known of the vendor, with the limits of one of them."""

from __future__ import annotations

from dataclasses import replace

from torchferry.errors import VendorError
from torchferry.vendors.model import Card, DtypeLimit, Narrowing, Vendor


def with_card(vendor: Vendor, name: str | None) -> Vendor:
    """The vendor as a machine with this card shows it; the typical server's has its name, too."""
    if not name or name.lower() == vendor.limits.device_name.lower():
        return vendor
    for card in vendor.cards:
        if card.name.lower() == name.lower():
            return _with(vendor, card)
    known = ", ".join(card_names(vendor))
    raise VendorError(
        f"{vendor.name}: nothing is known of a card '{name}'; "
        + (f"known: {known}" if known else "leave --card out")
        + f"; `ferry vendors {vendor.name}` shows what is known"
    )


def card_names(vendor: Vendor) -> list[str]:
    """The cards that can be chosen, the typical one first."""
    return [*filter(None, [vendor.limits.device_name]), *(card.name for card in vendor.cards)]


def _with(vendor: Vendor, card: Card) -> Vendor:
    limits = vendor.limits
    dtypes = dict(limits.dtypes)
    if card.without_message:
        refused = DtypeLimit(Narrowing.REFUSED, message=card.without_message)
        dtypes.update(dict.fromkeys(card.without, refused))
    return replace(
        vendor,
        card=card,
        amp_dtypes=card.amp_dtypes or vendor.amp_dtypes,
        limits=replace(
            limits,
            device_name=card.name,
            device_memory=card.memory or limits.device_memory,
            device_count=card.count or limits.device_count,
            dtypes=dtypes,
        ),
    )

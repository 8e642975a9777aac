"""What a vendor offers instead of a CUDA-only library, as words for a report."""

from __future__ import annotations

from torchferry.text import Text
from torchferry.vendors.model import Replacement, Vendor

_USE = Text("; instead: {use}", "；可改用：{use}")
_NOTHING = Text("; no replacement is known for {company}", "；未知 {company} 有何替代")


def replacement_of(vendor: Vendor, name: str) -> Replacement | None:
    """The entry for a dotted name, or for the longest part of it that has one."""
    entries = {entry.cuda: entry for entry in vendor.replacements}
    while name:
        if name in entries:
            return entries[name]
        name = name.rpartition(".")[0]
    return None


def with_advice(text: Text, vendor: Vendor, name: str) -> Text:
    """A sentence followed by what to use instead."""
    entry = replacement_of(vendor, name)
    advice = (
        _USE.format(use=entry.use) if entry and entry.use else _NOTHING.format(company=vendor.company_name)
    )
    return Text(text.en + advice.en, text.zh + advice.zh)

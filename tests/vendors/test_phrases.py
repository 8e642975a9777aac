"""Phrases of vendors' tables in Chinese: those of the built-in vendors that reports show most."""

from __future__ import annotations

from torchferry.vendors.phrases import phrase, phrases
from torchferry.vendors.registry import get_vendor, vendor_names


def test_limits_and_ways_to_build_kernels_are_translated() -> None:
    missing = []
    for name in vendor_names():
        vendor = get_vendor(name)
        limits = [vendor.dtypes.get(dtype, "") for dtype in ("float64", "complex64", "complex128", "sparse")]
        for words in (*limits, vendor.jit_script, vendor.graphs):
            has_words = any(word.isalpha() for word in words.split()) and " " in words
            if has_words and words not in ("unknown",) and phrase(words).zh == words:
                missing.append((name, words))
    assert missing == []


def test_every_phrase_is_one_that_a_table_has() -> None:
    used = set()
    for name in vendor_names():
        vendor = get_vendor(name)
        used |= {*vendor.dtypes.values(), vendor.jit_script, vendor.graphs, vendor.apex, vendor.extension}
        used |= {vendor.memory_format, *(entry.use for entry in vendor.replacements)}
    assert set(phrases()) <= used
    assert all(english != chinese for english, chinese in phrases().items())


def test_an_unknown_phrase_stays_english() -> None:
    assert tuple(phrase("an unknown limit")) == ("an unknown limit", "an unknown limit")

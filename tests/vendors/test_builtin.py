"""Every built-in vendor: what is asked of it is there, it is quick to load, and says unknown where nothing is known."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from torchferry.vendors.checklist import DEMANDS, Demand, Folder
from torchferry.vendors.model import Support, Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, load_vendor, vendor_names

NAMES = vendor_names()
pytestmark = pytest.mark.parametrize("vendor", [get_vendor(name) for name in NAMES], ids=NAMES)


@pytest.mark.parametrize("demand", DEMANDS, ids=[demand.title.en for demand in DEMANDS])
def test_what_is_asked_of_it_is_there(vendor: Vendor, demand: Demand) -> None:
    assert [f"{file}: {text.en}" for file, text in demand.lacking(Folder(Path(vendor.folder)))] == []


def test_every_source_has_a_name(vendor: Vendor) -> None:
    assert vendor.sources and all(source.name for source in vendor.sources)


def test_an_unsupported_name_has_no_other(vendor: Vendor) -> None:
    for cuda, api in vendor.apis.items():
        assert (api.name == "") is (api.support is Support.UNSUPPORTED), cuda


def test_unlisted_name_is_unknown(vendor: Vendor) -> None:
    assert vendor.api("torch.cuda.no_such_name").support is Support.UNKNOWN


def test_what_is_put_in_a_place_is_a_dotted_name(vendor: Vendor) -> None:
    for entry in vendor.replacements:
        assert " " not in entry.automatic + entry.cuda


def test_unlisted_operators(vendor: Vendor) -> None:
    ops = load_ops(Path(vendor.folder))
    assert ops.has_kernel("no_such_op") is (False if ops.complete else None)
    assert ops.has_kernel("no_such_op", "0.1") is None


def test_error_patterns_in_their_order(vendor: Vendor) -> None:
    patterns = Folder(Path(vendor.folder)).errors.patterns
    assert any(pattern.any_vendor for pattern in patterns)
    assert [pattern.rank for pattern in patterns] == sorted(pattern.rank for pattern in patterns)
    for pattern in patterns:
        re.compile(pattern.regex)
        assert all([*pattern.cause, *pattern.remedy]) and pattern.cause.en != pattern.cause.zh, pattern.id


def test_messages_name_what_they_are_about(vendor: Vendor) -> None:
    limits = vendor.limits
    assert "{wanted}" in (limits.out_of_memory_message or "{wanted}")
    for wording in filter(None, (limits.missing_message, limits.raise_when_message)):
        assert "{operator}" in wording


def test_loads_quickly(vendor: Vendor) -> None:
    def once() -> float:
        start = time.process_time()
        load_vendor(Path(vendor.folder))
        return time.process_time() - start

    assert min(once() for _ in range(5)) < 0.040

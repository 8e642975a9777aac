"""The tables of equivalents: what each entry must say, and what is said of one with a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import make_similar_table

from torchferry.errors import VendorError
from torchferry.text import Language
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.similar import Similar, load_similar

FOLDERS = {**{name: get_vendor(name).folder for name in vendor_names()}, "any": ""}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_entry_says_why_and_whence(name: str) -> None:
    for entry in load_similar(FOLDERS[name]):
        assert entry.source and entry.why.en and entry.why.zh, entry
        assert bool(entry.remark.en) is bool(entry.remark.zh), entry
        assert entry.use or entry.kind in ("unsupported", "risk"), entry


@pytest.mark.parametrize("name", FOLDERS)
def test_code_for_one_device_names_no_other(name: str) -> None:
    plugins = {get_vendor(other).plugin for other in vendor_names() if other != name} - {""}
    for entry in load_similar(FOLDERS[name]):
        assert not any(plugin in entry.use for plugin in plugins), entry


def entries_of(name: str, cuda: str) -> list[Similar]:
    return [entry for entry in load_similar(FOLDERS[name]) if entry.cuda == cuda]


def test_an_operator_is_replaced_where_the_table_lacks_it() -> None:
    (first, _) = entries_of("ascend", "torch.nn.functional.huber_loss")
    assert "aten::huber_loss" in first.why.en and "CPU" in first.why.en
    assert not entries_of("moorethreads", "torch.nn.functional.huber_loss")
    assert not entries_of("intel", "torch.nn.functional.huber_loss")  # nothing is known of its operators
    (entry,) = entries_of("moorethreads", "torch.matrix_exp")
    assert (entry.use, entry.kind) == ("", "unsupported") and "raises" in entry.why.en


def test_a_vendor_without_a_table_gets_plain_torch(tmp_path: Path) -> None:
    assert load_similar(str(tmp_path)) == load_similar("")


@pytest.mark.parametrize(
    ("cuda", "use", "message"),
    [
        ("torch.f(a, b=)", "torch.g({a})", r"similar\[1\]\.cuda' has no signature"),
        ("torch.f(a)", "torch.g({b})", r"similar\[1\]\.use' mentions 'b'.*\['a'\]"),
        ("torch.f(a)", "torch.g({a}", r"similar\[1\]\.use' is no expression"),
        ("torch f(a)", "torch.g({a})", r"similar\[1\]\.cuda' must be a string that matches"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, cuda: str, use: str, message: str) -> None:
    row = f'[[similar]]\ncuda = "{cuda}"\nuse = "{use}"\nwhy = "w"\nsource = "s"\n'
    (tmp_path / "similar.toml").write_text(row)
    with pytest.raises(VendorError, match=message):
        load_similar(str(tmp_path))


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    row = '[[similar]]\ncuda = "torch.f(a, b=1)"\nuse = "torch.g({a}[[, {b}]])"\nwhy = "w"\nsource = "s"\n'
    (tmp_path / "similar.toml").write_text(row)
    (entry,) = load_similar(str(tmp_path))
    assert (entry.cuda, entry.signature, entry.why.zh) == ("torch.f", "a, b=1", "w")


@pytest.mark.parametrize("language", make_similar_table.LANGUAGES)
def test_the_pages_show_the_tables(language: Language) -> None:
    text = make_similar_table.page(language).read_text("utf-8")
    assert text == make_similar_table.with_tables(text, language), "run `make docs`"
    assert "torch.nn.functional.huber_loss" in text and "torch.matrix_exp" in text

"""`ferry vendors`: table, single vendor, JSON, both languages, user vendors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchferry.cli import vendors as command
from torchferry.cli.main import parser_of
from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names


def ferry_vendors(*arguments: str) -> int:
    return command.run(parser_of("vendors").parse(arguments))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_table_lists_all(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry_vendors("--lang", language) == 0
    output = capsys.readouterr().out
    for name in vendor_names():
        assert name in output
        assert get_vendor(name).dist_backend in output
    assert ("厂商" if language == "zh" else "Company") in output


def test_language_of_the_user(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "zh")
    ferry_vendors()
    assert "厂商" in capsys.readouterr().out


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", vendor_names())
def test_one_vendor(name: str, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ferry_vendors(name, "--lang", language) == 0
    output = capsys.readouterr().out
    vendor = get_vendor(name)
    for shown in (vendor.company, vendor.torch_module, vendor.visible_devices_env, vendor.sources[0].version):
        assert shown in output
    assert (
        command.INCOMPLETE.in_language("zh" if language == "zh" else "en") in output
    ) != vendor.apis_complete


def test_brackets_are_shown_as_they_are(acme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = acme / "vendor.toml"
    file.write_text(file.read_text() + 'graphs = "call [bold]x[/bold](q)[0]"\n')
    ferry_vendors("acme", "--vendor-path", str(acme))
    assert "call [bold]x[/bold](q)[0]" in capsys.readouterr().out


def test_json_table(capsys: pytest.CaptureFixture[str]) -> None:
    ferry_vendors("--format", "json")
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == vendor_names()
    for row in rows:
        assert sum(row["apis"].values()) == len(get_vendor(row["name"]).apis)


def test_json_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    name = vendor_names()[0]
    ferry_vendors(name, "--format", "json")
    shown = json.loads(capsys.readouterr().out)
    assert shown["name"] == name
    assert shown["apis"]["torch.cuda.set_device"]["support"] == "same"
    assert shown["ops"]["kernels"]


def test_user_vendor_of_which_little_is_known(acme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ferry_vendors("--vendor-path", str(acme), "--lang", "en")
    line = next(line for line in capsys.readouterr().out.splitlines() if "acme" in line)
    assert line.count("unknown") == 1  # operators


def test_unknown_vendor() -> None:
    with pytest.raises(VendorError, match="unknown vendor 'acme'"):
        ferry_vendors("acme")


def test_every_text_exists_in_both_languages() -> None:
    single = [value for value in vars(command).values() if isinstance(value, Text)]
    for text in [*single, *command.COLUMNS.values(), *command.SECTIONS.values()]:
        assert text.en and text.zh

"""The file of what a vendor's module has beside CUDA's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.errors import VendorError
from torchferry.sim.device_module.extras import EXTRAS_FILE, Extra, functions, load_extras, properties


def written(folder: Path, text: str) -> Path:
    (folder / EXTRAS_FILE).write_text(text, encoding="utf-8")
    return folder


def test_a_folder_without_the_file_has_none(tmp_path: Path) -> None:
    assert load_extras(tmp_path) == ()


def test_lines_become_entries(tmp_path: Path) -> None:
    text = '# a comment\n\nnothing set_option\nconstant mode "very high"\ngetter get_x x [1, 2]\nalias a b\n'
    assert load_extras(written(tmp_path, text)) == (
        Extra("nothing", "set_option"),
        Extra("constant", "mode", "", "very high"),
        Extra("getter", "get_x", "x", [1, 2]),
        Extra("alias", "a", "b"),
    )


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense name", "line 1: unknown kind 'nonsense'"),
        ("constant name", "takes 2 words after it"),
        ("nothing", "takes 1 words after it"),
        ("constant name yes", "'yes' is not a JSON value"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    with pytest.raises(VendorError, match=complaint):
        load_extras(written(tmp_path, line))


def test_functions_share_what_is_remembered(tmp_path: Path) -> None:
    text = "setter set_x x\ngetter get_x x 1\nnegation is_not_x x false\n"
    made = functions(load_extras(written(tmp_path, text)))
    assert (made["get_x"](), made["is_not_x"]()) == (1, False)
    made["set_x"](x=0)
    assert (made["get_x"](), made["is_not_x"]()) == (0, True)
    with pytest.raises(TypeError, match="one argument"):
        made["set_x"](1, 2)


def test_fields_of_the_properties(tmp_path: Path) -> None:
    fields = properties(load_extras(written(tmp_path, "property major 5\ncores multi_processor_count\n")))
    assert fields["major"] == 5
    assert fields["multi_processor_count"] >= 1

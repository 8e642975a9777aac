"""A class has a name of its own, so that a search for it finds one place."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src/torchferry"
# Packages of vendors that programs import: their classes have the vendors' names.
SHIMS = "sim/shims/"
# What stands in for torch.cuda and for a plugin's torch.<device>: the names are PyTorch's, the same in each.
DEVICE_MODULES = ("runtime/", "sim/device_module/")


def _place(path: str) -> str:
    return "device modules" if path.startswith(DEVICE_MODULES) else path


def test_no_class_has_the_name_of_another() -> None:
    places = defaultdict(set)
    for file in PACKAGE.rglob("*.py"):
        path = file.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not path.startswith(SHIMS):
                places[node.name].add(_place(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}

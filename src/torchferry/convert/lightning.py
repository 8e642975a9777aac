"""The module that a conversion adds for PyTorch Lightning, which knows no device but CUDA, MPS, TPUs and the CPU."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.convert.added import AddedFile
from torchferry.convert.target import Helper, Target
from torchferry.convert.targets.helper_place import place_helper

if TYPE_CHECKING:
    from torchferry.convert.project import ProjectOutcome

NAME = "ferry_lightning"
_SIGN = b'"""Lets PyTorch Lightning train on '
_PORTABLE = (
    'torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"  '
    "# whatever is there"
)
_EITHER = '"{device}" if hasattr(torch, "{device}") and torch.{device}.is_available() else "cuda"'
_OPTIONAL = """
try:
    import {plugin}  # noqa: F401 - this adds torch.{device}
except ImportError:
    pass
"""


def placed(target: Target, folder: Path, paths: Sequence[str], sources: Sequence[bytes]) -> Target:
    """The target for one project: it knows how each file imports the module, if any file speaks of Lightning."""
    if not any(b"lightning" in data for data in sources):
        return target
    placement = place_helper(folder, paths)
    imports = {path: f"from {package} import {NAME}" for path, package in placement.packages.items()}
    helper = Helper(NAME, target.vendor, helper_source(target), imports, placement.folders)
    return replace(target, lightning=helper)


def import_line(target: Target, path: str) -> str:
    """The statement by which a file imports the module."""
    return target.lightning.line(path) if target.lightning else f"import {NAME}"


def add_helper(outcome: ProjectOutcome, target: Target) -> None:
    """Add the module beside the converted files that import it, unless an earlier conversion has."""
    helper = target.lightning
    if helper is None:
        return
    known = {entry.path.replace(os.sep, "/") for entry in outcome.entries}
    for item in outcome.outcomes:
        if item.new_data is not None and NAME.encode() in item.new_data:
            path = item.path.replace(os.sep, "/")
            place = posixpath.join(helper.places.get(path, posixpath.dirname(path)), f"{NAME}.py")
            if place not in known:
                outcome.added[place] = AddedFile(helper.data, may_exist=True)


def is_helper(data: bytes) -> bool:
    """Whether a file is such a module, of this conversion or an earlier one."""
    return data.startswith(_SIGN)


def helper_source(target: Target) -> bytes:
    """The module for a target."""
    template = (
        resources.files("torchferry.convert").joinpath("assets/ferry_lightning.py.txt").read_text("utf-8")
    )
    vendor = target.helper.vendor if target.helper else target.vendor
    device, plugin = vendor.device_type, vendor.plugin
    if target.helper:
        where, expression = f"{vendor.company} and CUDA", _EITHER.format(device=device)
        line = _OPTIONAL.format(plugin=plugin, device=device) if plugin else ""
    elif target.is_portable:
        where, expression, line, device = "the accelerator that PyTorch finds", _PORTABLE, "", "..."
    else:
        where, expression = vendor.company, f'"{device}"'
        line = f"import {plugin}  # noqa: F401 - this adds torch.{device}\n" if plugin else ""
    words = {
        "@WHERE@": where,
        "@PLUGIN@\n": f"{line}\n" if line else "\n",
        "@DEVICE@": expression,
        "@NAME@": device,
    }
    for word, text in words.items():
        template = template.replace(word, text)
    return template.encode("utf-8")

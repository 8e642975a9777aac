"""The folder of a delivery: which framework, domain and model it names."""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import InputError
from torchferry.vendors.zoo import ZooTable


@dataclass(frozen=True)
class Place:
    """The parts of the path that the zoo's layout names."""

    framework: str
    domain: str
    model: str
    fixed: bool  # whether the parts between them are those of the layout


def parse_place(path: Path, table: ZooTable) -> Place:
    """The parts of a path that ends as the layout says; what is missing is ""."""
    wanted = table.layout.split("/")
    given = Path(os.path.abspath(path)).parts[-len(wanted) :]
    found = {"framework": "", "domain": "", "model": ""}
    fixed = len(given) == len(wanted)
    for name, part in zip(wanted, given, strict=False):
        key = name.strip("{}")
        if key in found:
            found[key] = part
        else:
            fixed = fixed and name == part
    return Place(**found, fixed=fixed)


def checked_place(path: Path, table: ZooTable) -> Place:
    """The same for a folder that is to be made: a path that does not fit is refused."""
    place = parse_place(path, table)
    if not place.fixed or not place.model:
        raise InputError(
            f"{path}: {table.name} wants {table.layout}, as in {_example(table)}; name the folder so"
        )
    if place.framework not in table.frameworks:
        known = ", ".join(table.frameworks)
        meant = _meant(place.framework, table.frameworks)
        raise InputError(
            f"{path}: '{place.framework}' is no framework of {table.name}; known: {known}{meant}"
        )
    meant = _meant(place.domain, table.domains)
    if meant:
        raise InputError(f"{path}: '{place.domain}' is no domain of {table.name}{meant}")
    if not re.fullmatch(r"\w[\w.+-]*", place.model):
        raise InputError(f"{path}: '{place.model}' is no name for a model; use letters, digits, . - + _")
    return place


def closest(name: str, known: tuple[str, ...]) -> str:
    """The known name that another one was most probably meant to be; "": it is one, or is like none."""
    if name in known:
        return ""
    folded = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.8)
    return folded[found[0]] if found else ""


def _meant(name: str, known: tuple[str, ...]) -> str:
    close = closest(name, known)
    return f"; did you mean {close}?" if close else ""


def _example(table: ZooTable) -> str:
    return table.layout.format(framework=table.frameworks[0], domain=table.domains[0], model="ResNet50")

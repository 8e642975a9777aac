"""Puts together what documents state and sources check, argument by argument."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torchferry.emulate.cann.entries import ArgumentLimit, FunctionArgument

from .documents import Description, Stated, descriptions
from .sources import Checked, checks, functions

MOST_DIMS = 8  # of any tensor in CANN
_TENSORS = ("tensor", "tensors")
Interface = tuple[FunctionArgument, ...]
Limits = dict[str, tuple[ArgumentLimit, ...]]


@dataclass
class Read:
    """What was read of all functions."""

    described: dict[str, list[Description]] = field(default_factory=dict)
    checked: dict[str, Checked] = field(default_factory=dict)

    def add(self, path: str, text: str) -> None:
        """A document or a source."""
        if path.endswith(".md"):
            for function, description in descriptions(text):
                self.described.setdefault(function, []).append(description)
        elif found := functions(text):
            of_source = checks(text)
            self.checked.update(dict.fromkeys(found, of_source))


# Arguments that their documents call reserved, null or without elements: the plugin hands a tensor of any dtype over.
_RESERVED = {("aclnnQuantMatmulV5", "yOffset")}


def limits(read: Read, interfaces: Mapping[str, Interface], counts: Counter[str]) -> Limits:
    """Function -> limits of its arguments, for those that have any."""
    found = {}
    for function, interface in sorted(interfaces.items()):
        rows = tuple(_of_function(read, function, interface, counts))
        if rows:
            found[function] = rows
    return found


def _of_function(
    read: Read, function: str, interface: Interface, counts: Counter[str]
) -> Iterator[ArgumentLimit]:
    described = read.described.get(function, [])
    if len(described) != 1:  # of two documents there is no telling which is meant
        return
    stated = _by_argument(described[0], interface)
    checked = read.checked.get(function)
    for argument in interface:
        is_reserved = (function, argument.name) in _RESERVED
        if argument.kind in _TENSORS and argument.name in stated and not is_reserved:
            limit = _limit(argument.name, stated[argument.name], checked, counts)
            if limit.dtypes or limit.dims:
                yield limit


def _by_argument(description: Description, interface: Interface) -> dict[str, Stated]:
    """By the interface's names; where a document has others, by their order if it has as many."""
    stated = dict(description.arguments)
    names = [argument.name for argument in interface]
    if len(stated) == len(names):
        return {name: stated.get(name, of_row) for name, of_row in zip(names, stated.values(), strict=True)}
    return {name: stated[name] for name in names if name in stated}


def _limit(name: str, stated: Stated, checked: Checked | None, counts: Counter[str]) -> ArgumentLimit:
    case, dtypes = _dtypes(name, stated.dtypes, checked)
    counts[case] += 1
    return ArgumentLimit(name, tuple(sorted(dtypes)), _dims(name, stated.dims, checked))


def _dtypes(name: str, stated: frozenset[str] | None, checked: Checked | None) -> tuple[str, frozenset[str]]:
    """How document and source go together, and what both leave allowed; nothing for no limit."""
    if stated is None:
        return "document not read", frozenset()
    if checked is None:
        return "document alone", stated
    known = _known_as(name, checked)
    if known in checked.dtypes:
        listed = checked.dtypes[known]
        return ("agree" if listed == stated else "differ"), stated | listed
    if known in checked.cast:
        return "source casts", frozenset()
    other = checked.dtypes.get(checked.same.get(known, ""))
    if other is not None:
        return "as another argument", stated | other
    return "source checks otherwise", stated | checked.every


def _known_as(name: str, checked: Checked) -> str:
    """What the checks call an argument: shared ones call a selfRef self."""
    plain = name.removesuffix("Ref")
    names = checked.dtypes.keys() | checked.same.keys() | checked.cast
    return name if name in names or plain not in names else plain


def _dims(name: str, stated: tuple[int, int] | None, checked: Checked | None) -> tuple[int, int] | None:
    """Those that the source checks too: documents often name the usual number, where others do as well."""
    if stated is None:
        return None
    least, most = stated
    in_source = checked or Checked()
    least = min(least, in_source.at_least.get(name, 0))
    most = max(most, in_source.at_most.get(name, MOST_DIMS))
    return least, most

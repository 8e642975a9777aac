"""HDF5's root and the groups of operators in it, which are written again at each checkpoint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torchferry.accuracy.file.objects import large_group, number_attribute, small_group, text_attribute
from torchferry.accuracy.file.trees import name_tree
from torchferry.accuracy.model import Header

_SMALL = 16  # members that a group holds in its header; of more, each would be looked for one by one


class Groups:
    """The calls of each operator, by number."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._calls: dict[str, list[tuple[bytes, int]]] = {}
        self._saved: dict[str, tuple[int, int]] = {}  # number of members, where the group lies

    def add(self, operator: str, number: int, address: int) -> None:
        """A call's group lies there."""
        self._calls.setdefault(operator, []).append((b"%d" % number, address))

    def forget(self) -> None:
        """None of them is in the file."""
        self._saved.clear()

    def encoded(self, base: int, notes: Iterable[str] = (), complete: bool = False) -> tuple[bytes, int]:
        """All groups that have changed, for this place in the file, and where the root will be."""
        parts, place = [], base
        for operator, links in self._calls.items():
            count, _ = self._saved.get(operator, (0, 0))
            if count == len(links):
                continue
            data, address = group(links, place)
            parts.append(data)
            place += len(data)
            self._saved[operator] = len(links), address
        members = [(operator.encode(), address) for operator, (_, address) in self._saved.items()]
        data, address = root(members, with_notes(self._header, notes, complete), place)
        return b"".join([*parts, data]), address


def with_notes(header: Header, notes: Iterable[str], complete: bool) -> Header:
    """A header as it is when the record ends."""
    return replace(header, notes=(*header.notes, *notes), complete=complete)


def root(members: list[tuple[bytes, int]], header: Header, base: int) -> tuple[bytes, int]:
    """HDF5's root for this place in the file, and where its header will be."""
    tree = name_tree(members, base)
    data = tree.data + large_group(tree.tree, tree.heap, root_attributes(header))
    return data, base + len(tree.data)


def group(links: list[tuple[bytes, int]], base: int) -> tuple[bytes, int]:
    """A group for this place in the file, and where its header will be."""
    if len(links) <= _SMALL:
        return small_group(links), base
    tree = name_tree(links, base)
    return tree.data + large_group(tree.tree, tree.heap), base + len(tree.data)


def root_attributes(header: Header) -> list[bytes]:
    """What the record is of, for those who read it with plain h5py."""
    texts = {
        "kept": header.kept.value,
        "program": header.program,
        "device": header.device,
        "torch": header.torch,
        "vendor": header.vendor,
        "replayed": header.replayed,
        "selected": header.selected,
        "notes": "\n".join(header.notes),
    }
    numbers = {
        "rank": header.rank,
        "world": header.world,
        "simulated": header.simulated,
        "complete": header.complete,
    }
    return [text_attribute(name, value) for name, value in texts.items()] + [
        number_attribute(name, int(value)) for name, value in numbers.items()
    ]

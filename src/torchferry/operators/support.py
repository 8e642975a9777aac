"""How a vendor's table of operators is read: whether the device has an operator, and by which entry of the table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import translate
from functools import cache

from torchferry.operators.names import ALWAYS_THERE, EQUIVALENTS, NEED_OWN_KERNEL
from torchferry.operators.native_functions import OperatorFacts
from torchferry.vendors.ops import Ops

_MOVES_DATA = (
    "copy_", "fill_*", "zero_", "cat*", "_cat*", "stack*", "_stack*", "index.*", "index_select*", "index_put*",
    "_index_put_impl_*", "gather*", "take*", "where.*", "masked_select*", "masked_scatter*", "flip*", "roll*",
    "repeat*", "_foreach_copy_*", "_local_scalar_dense", "resize_*", "equal", "nonzero*",
    "_pack_padded_sequence",
)  # fmt: skip
_COMPOSITE = "Composite"


class SupportBasis(str, Enum):
    """Why an operator is there, or not."""

    LISTED = "listed"  # the table has this very name
    SAME_KERNEL = "same_kernel"  # the table has another overload of it, whose kernel computes this one
    EQUIVALENT = "equivalent"  # the table has what stands for it on devices
    ALWAYS_THERE = "always_there"  # no adapter can be without it
    COMPOSITE = "composite"  # PyTorch makes it of others
    ABSENT = "absent"
    UNKNOWN = "unknown"  # the table does not list all operators

    @property
    def has_kernel(self) -> bool:
        """Whether the device itself computes it, as one operator."""
        return self in (
            SupportBasis.LISTED,
            SupportBasis.SAME_KERNEL,
            SupportBasis.EQUIVALENT,
            SupportBasis.ALWAYS_THERE,
        )


@dataclass(frozen=True)
class OperatorStanding:
    """What the table says of one operator."""

    basis: SupportBasis
    entry: str = ""  # the name that the table has


@dataclass(frozen=True)
class VendorTable:
    """The vendor's operators in one adapter version."""

    ops: Ops
    version: str

    def lists(self, name: str) -> bool:
        """Whether the table has a kernel under this very name."""
        return self.ops.has_kernel(name, self.version) is True

    @property
    def complete(self) -> bool:
        """Whether an operator that is not listed is missing; otherwise nothing is known of it."""
        return self.ops.complete and (not self.version or self.version in self.ops.versions)


def served_by(facts: Mapping[str, OperatorFacts]) -> dict[str, tuple[str, ...]]:
    """out= overload -> the functional and in-place ones that it computes."""
    found: dict[str, list[str]] = {}
    for name, fact in facts.items():
        if fact.structured_delegate:
            found.setdefault(fact.structured_delegate, []).append(name)
    return {name: tuple(served) for name, served in found.items()}


def standing(fact: OperatorFacts, siblings: tuple[str, ...], table: VendorTable) -> OperatorStanding:
    """What the table says of an operator; `siblings` are the overloads that this one computes."""
    if table.lists(fact.name):
        return OperatorStanding(SupportBasis.LISTED, fact.name)
    if not table.complete:
        return OperatorStanding(SupportBasis.UNKNOWN)
    if matches(fact.name, ALWAYS_THERE):
        return OperatorStanding(SupportBasis.ALWAYS_THERE)
    for names, basis in (
        (_same_kernel(fact, siblings), SupportBasis.SAME_KERNEL),
        (equivalents(fact.name), SupportBasis.EQUIVALENT),
    ):
        for name in names:
            if table.lists(name):
                return OperatorStanding(basis, name)
    # a composite operator needs no kernel of its own: its parts are looked at when they come
    if is_composite(fact) and not fact.structured_delegate and not matches(fact.name, NEED_OWN_KERNEL):
        return OperatorStanding(SupportBasis.COMPOSITE)
    return OperatorStanding(SupportBasis.ABSENT)


def _same_kernel(fact: OperatorFacts, siblings: tuple[str, ...]) -> Iterator[str]:
    yield from siblings
    if fact.structured_delegate:
        yield fact.structured_delegate
    base, _, overload = fact.name.partition(".")
    if "out" in overload or "grad_input" in overload or "output" in overload:
        yield base
        yield f"{base}.{overload.removesuffix('_out')}"


def equivalents(name: str) -> tuple[str, ...]:
    """Names of which any stands for this operator on a device."""
    return EQUIVALENTS.get(name, ()) or EQUIVALENTS.get(name.partition(".")[0], ())


def reported_as(fact: OperatorFacts) -> str:
    """The name under which an adapter speaks of a missing operator: that of the overload which does the work."""
    if fact.name == "convolution":  # PyTorch makes it of this one, whoever has a kernel
        return "aten::_convolution"
    return f"aten::{fact.structured_delegate or fact.name}"


def is_composite(fact: OperatorFacts) -> bool:
    """Whether PyTorch can make it of other operators, or of the overload that it delegates to."""
    return bool(fact.structured_delegate) or any(key.startswith(_COMPOSITE) for key in fact.kernels)


def moves_data(name: str) -> bool:
    """Whether it computes nothing: dtypes that the vendor computes narrower stay whole."""
    return matches(name, _MOVES_DATA)


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether an operator's name fits one of these, as file names do: `index_put*`."""
    return _pattern(patterns).match(name) is not None


@cache
def _pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all of them: the list of operators is long, and every process of a run reads it."""
    return re.compile("|".join(map(translate, patterns)))

"""How the simulated device treats each operator: what the vendor's table says of it, whether it goes straight to
the CPU's kernel, and on which devices its arguments may lie."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import cache

from torchferry.sim.native import Devices, OperatorRule, Verdict
from torchferry.sim.native_functions import DeviceCheck, OperatorFacts
from torchferry.sim.operator_equivalents import ALWAYS_THERE, EQUIVALENTS
from torchferry.vendors.ops import Ops

_DEVICES = {
    DeviceCheck.SAME: Devices.SAME,
    DeviceCheck.ITERATOR: Devices.HOST_SCALARS,
    DeviceCheck.NONE: Devices.ANY,
}
# Composite ones that the device takes whole: the CPU's own choice of convolution (`convolution` itself must stay
# composite: torch.jit.trace records the `_convolution` inside it), one call for many tensors, some that every step
# makes, and two that look for the CPU by name.
_TAKEN_WHOLE = (
    "_convolution", "convolution_backward", "copy_", "_foreach_*", "sum", "mean", "embedding", "conj_physical_",
    "mode.values",
)  # fmt: skip
# PyTorch's list has these under TensorIterator, but their indices may lie on the CPU by contract.
_INDICES_ANYWHERE = ("index.*", "index_put*", "_index_put_impl_*", "_unsafe_index*")
_MOVES_DATA = (
    "copy_", "fill_*", "zero_", "cat*", "_cat*", "stack*", "_stack*", "index.*", "index_select*", "index_put*",
    "_index_put_impl_*", "gather*", "take*", "where.*", "masked_select*", "masked_scatter*", "flip*", "roll*",
    "repeat*", "_foreach_copy_*", "_local_scalar_dense", "resize_*", "equal", "nonzero*",
)  # fmt: skip
_COMPOSITE = "Composite"


@dataclass(frozen=True)
class VendorTable:
    """The vendor's operators in one adapter version, and what the adapter does without one."""

    ops: Ops
    version: str
    missing: Verdict

    def lists(self, name: str) -> bool:
        """Whether the table has a kernel under this very name."""
        return self.ops.has_kernel(name, self.version) is True

    @property
    def complete(self) -> bool:
        """Whether an operator that is not listed is missing; otherwise nothing is known of it."""
        return self.ops.complete and (not self.version or self.version in self.ops.versions)


def routed(facts: Mapping[str, OperatorFacts]) -> list[str]:
    """Operators for which PyTorch would take a composite kernel unless told otherwise."""
    return [name for name, fact in facts.items() if not fact.generated and _is_routed(fact)]


def _is_routed(fact: OperatorFacts) -> bool:
    if _matches(fact, _TAKEN_WHOLE):
        return True
    on_cpu = "CPU" in fact.kernels or bool(fact.structured_delegate)
    return on_cpu and _is_composite(fact)


def _matches(fact: OperatorFacts, patterns: tuple[str, ...]) -> bool:
    return _pattern(patterns).match(fact.name) is not None


@cache
def _pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all of them: the list of operators is long, and every process of a run reads it."""
    return re.compile("|".join(map(translate, patterns)))


def _is_composite(fact: OperatorFacts) -> bool:
    return bool(fact.structured_delegate) or any(key.startswith(_COMPOSITE) for key in fact.kernels)


def rules(facts: Mapping[str, OperatorFacts], table: VendorTable) -> list[OperatorRule]:
    """One rule for every operator of PyTorch's list."""
    siblings = _served_by(facts)
    return [
        OperatorRule(
            name=f"aten::{name}",
            reported_as=f"aten::{fact.structured_delegate or name}",
            verdict=_verdict(fact, siblings.get(name, ()), table),
            devices=_devices(fact),
            moves_data=_matches(fact, _MOVES_DATA),
        )
        for name, fact in facts.items()
    ]


def _devices(fact: OperatorFacts) -> Devices:
    if _matches(fact, _INDICES_ANYWHERE):
        return Devices.HOST_TENSORS
    return _DEVICES[fact.device_check]


def _served_by(facts: Mapping[str, OperatorFacts]) -> dict[str, tuple[str, ...]]:
    """out= overload -> the functional and in-place ones that it computes."""
    found: dict[str, list[str]] = {}
    for name, fact in facts.items():
        if fact.structured_delegate:
            found.setdefault(fact.structured_delegate, []).append(name)
    return {name: tuple(served) for name, served in found.items()}


def _verdict(fact: OperatorFacts, siblings: tuple[str, ...], table: VendorTable) -> Verdict:
    if not table.complete:
        return Verdict.KERNEL if table.lists(fact.name) else Verdict.UNKNOWN
    if _matches(fact, ALWAYS_THERE):
        return Verdict.KERNEL
    if any(table.lists(name) for name in _names_that_count(fact, siblings)):
        return Verdict.KERNEL
    # a composite operator needs no kernel of its own: its parts are looked at when they come
    if _is_composite(fact) and not fact.structured_delegate:
        return Verdict.KERNEL
    return table.missing


def _names_that_count(fact: OperatorFacts, siblings: tuple[str, ...]) -> Iterator[str]:
    yield fact.name
    yield from siblings
    if fact.structured_delegate:
        yield fact.structured_delegate
    base, _, overload = fact.name.partition(".")
    if "out" in overload or "grad_input" in overload or "output" in overload:
        yield base
        yield f"{base}.{overload.removesuffix('_out')}"
    yield from EQUIVALENTS.get(fact.name, ()) or EQUIVALENTS.get(base, ())

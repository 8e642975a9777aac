"""Judges every operator that a program called: what a vendor's adapter does with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import InputError
from torchferry.operators.equivalents import CALLED_BEFORE, CALLED_ELSEWHERE, PROVEN_BY, TAKEN_WHOLE
from torchferry.operators.known import operator_facts
from torchferry.operators.native_functions import OperatorFacts
from torchferry.operators.support import (
    Basis,
    Standing,
    VendorTable,
    reported_as,
    served_by,
    standing,
)
from torchferry.ops import reasons
from torchferry.ops.advice import Adviser
from torchferry.ops.dtype_limits import dtype_limit
from torchferry.ops.model import Capture, Signature, Use, tensors_in
from torchferry.ops.readiness import Judgement, Readiness, Support
from torchferry.ops.whole import device_uses
from torchferry.text import Text
from torchferry.vendors.model import MissingOperator, Vendor
from torchferry.vendors.ops import Ops, load_ops

_ATEN = "aten"
_TAKEN_APART = "CompositeImplicitAutograd"
_COLLECTIVES = ("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd")


def judge(capture: Capture, vendor: Vendor, version: str = "") -> Readiness:
    """What the vendor's adapter, in one version or the newest that is known, does with each operator of a program."""
    table = vendor_table(vendor, version)
    judging = _Judging(vendor, table, operator_facts(capture.torch))
    uses = device_uses(capture, judging.is_taken_whole)
    return Readiness(
        capture=capture,
        vendor=vendor.name,
        device_type=vendor.device_type,
        version=table.version,
        complete=table.complete,
        judgements=tuple(judging.judgement(use) for use in uses),
    )


def vendor_table(vendor: Vendor, version: str = "") -> VendorTable:
    """The vendor's table for one version of its adapter, or the newest that is known; an unknown one is an error."""
    ops = load_ops(Path(vendor.folder))
    return VendorTable(ops, _version(vendor, ops, version))


def predicted_fallbacks(readiness: Readiness) -> dict[str, int]:
    """Operators that the adapter will compute on the CPU, under the names that it reports, and how often."""
    facts = operator_facts(readiness.capture.torch)
    calls: Counter[str] = Counter()
    for judgement in readiness.judgements:
        if judgement.support is Support.FALLBACK:
            fact = facts.get(_on_device(judgement.use.operator.partition("::")[2]))
            calls[reported_as(fact) if fact else judgement.use.operator] += judgement.use.calls
    return dict(calls)


def moved_bytes(signature: Signature) -> int:
    """What one call on the CPU moves: every tensor there; results, and tensors that it writes to, back."""
    there = sum(spec.bytes for spec in signature.inputs)
    back = sum(spec.bytes for spec in signature.outputs)
    base = signature.operator.partition("::")[2].partition(".")[0]
    if not signature.results and base.endswith("_") and signature.arguments:
        # gives nothing back, so it writes to its first argument, a tensor or a list of them
        back = sum(spec.bytes for spec in tensors_in(signature.arguments[0].value))
    return there + back


def _version(vendor: Vendor, ops: Ops, wanted: str) -> str:
    if not wanted:
        return vendor.limits.operator_version
    if wanted not in ops.versions:
        known = ", ".join(ops.versions)
        rest = f"give one of {known}" if known else "its table is of no version: leave the version out"
        raise InputError(f"the operators of {vendor.name}'s adapter {wanted} are not known; {rest}")
    return wanted


def _on_device(name: str) -> str:
    """The name under which an operator arrives at a device other than the CPU and CUDA."""
    name = CALLED_BEFORE.get(name, name)
    return CALLED_ELSEWHERE.get(name) or CALLED_ELSEWHERE.get(name.partition(".")[0]) or name


@dataclass(frozen=True)
class _Answer:
    support: Support
    reason: Text


class _Judging:
    """One vendor's table, asked many times."""

    def __init__(self, vendor: Vendor, table: VendorTable, facts: Mapping[str, OperatorFacts]) -> None:
        self._vendor = vendor
        self._table = table
        self._facts = facts
        self._siblings = served_by(facts)
        self._missing = vendor.limits.missing_operator_in(os.environ)
        self._stands: dict[str, Standing] = {}
        self._by_base: dict[
            str, list[str]
        ] = {}  # operator -> its overloads, but for those that only write elsewhere
        self._adviser = Adviser(vendor, table, facts)

    def is_taken_whole(self, operator: str) -> bool:
        """Whether a composite operator arrives at the device as one, so that its parts never do. Autograd takes some
        apart before any device sees them, whatever the vendor lists."""
        name = operator.partition("::")[2]
        if name in TAKEN_WHOLE:
            return True
        fact = self._facts.get(name)
        is_taken_apart = fact is not None and _TAKEN_APART in fact.kernels
        return not is_taken_apart and self._standing(operator).basis.has_kernel

    def judgement(self, use: Use) -> Judgement:
        answer = self._answer(use)
        falls_back = answer.support is Support.FALLBACK
        return Judgement(
            use=use,
            support=answer.support,
            reason=answer.reason,
            moved_bytes=moved_bytes(use.signature) * use.calls if falls_back else 0,
            advice=self._adviser.advise(use, answer.support) if answer.support.is_problem else (),
        )

    def _answer(self, use: Use) -> _Answer:
        namespace, _, name = use.operator.partition("::")
        if namespace != _ATEN:
            return self._of_library(use, namespace)
        if any(spec.layout != "strided" for spec in use.signature.inputs):
            return self._of_sparse(name)
        stands = self._standing(use.operator)
        if stands.basis is Basis.ABSENT:
            return self._absent(name)
        if stands.basis is Basis.UNKNOWN and name not in self._table.ops.limits:
            known = name in self._facts
            return _Answer(Support.UNKNOWN, reasons.NOT_COMPLETE if known else reasons.NOT_IN_PYTORCH)
        entry = stands.entry or name
        limit = self._limit(use, entry)
        return _Answer(Support.LIMITED, limit) if limit else _served(stands, name)

    def _limit(self, use: Use, entry: str) -> Text | None:
        words = self._table.ops.limits.get(entry)
        if words:
            return reasons.LIMIT.format(limit=words)
        return dtype_limit(use, self._vendor.limits, self._table.ops.dtypes.get(entry, ()), os.environ)

    def _absent(self, name: str) -> _Answer:
        kinds = self._table.ops.special.get(name)
        version = self._table.version
        if self._missing is MissingOperator.UNKNOWN:
            return _Answer(Support.MISSING, reasons.ABSENT.format(version=version))
        falls_back = self._missing is MissingOperator.FALLS_BACK
        sentence = reasons.FALLS_BACK if falls_back else reasons.RAISES
        if kinds:
            sentence = reasons.SPECIAL_FALLS_BACK if falls_back else reasons.SPECIAL_RAISES
        text = sentence.format(version=version, kinds=", ".join(kinds or ()))
        return _Answer(Support.FALLBACK if falls_back else Support.MISSING, text)

    def _of_library(self, use: Use, namespace: str) -> _Answer:
        if self._table.lists(use.operator):
            return _Answer(Support.KERNEL, reasons.LISTED)
        if not (use.signature.inputs or use.signature.outputs):
            return _Answer(Support.KERNEL, reasons.NO_TENSOR)
        if namespace in _COLLECTIVES and self._vendor.dist_backend:
            return _Answer(Support.KERNEL, reasons.COLLECTIVE.format(backend=self._vendor.dist_backend))
        return _Answer(Support.UNKNOWN, reasons.OTHER_LIBRARY.format(library=namespace))

    def _of_sparse(self, name: str) -> _Answer:
        if "sparse" in self._table.ops.special.get(name, ()):
            return _Answer(Support.KERNEL, reasons.LISTED)
        return _Answer(Support.UNKNOWN, reasons.SPARSE)

    def _standing(self, operator: str) -> Standing:
        if operator not in self._stands:
            self._stands[operator] = self._look_up(operator.partition("::")[2])
        return self._stands[operator]

    def _look_up(self, name: str) -> Standing:
        arrives = _on_device(name)
        fact = self._facts.get(arrives)
        if fact is None:
            if self._table.lists(name):
                return Standing(Basis.LISTED, name)
            return self._agreed(self._overloads().get(name, ()))
        stands = standing(fact, self._siblings.get(arrives, ()), self._table)
        if stands.basis is Basis.UNKNOWN:
            return self._proven(arrives)
        if stands.basis is Basis.LISTED and arrives != name:
            return Standing(Basis.EQUIVALENT, arrives)
        return stands

    def _agreed(self, overloads: Sequence[str]) -> Standing:
        """Of an operator whose overload is not known: what holds for all that are not made of others."""
        every = [self._look_up(name) for name in overloads]
        stands = [each for each in every if each.basis is not Basis.COMPOSITE] or every
        if stands and len({each.basis.has_kernel for each in stands}) == 1:
            return stands[0]
        return Standing(Basis.UNKNOWN)

    def _overloads(self) -> Mapping[str, list[str]]:
        if not self._by_base:
            for name in self._facts:
                base, dot, overload = name.partition(".")
                if dot and "out" not in overload:
                    self._by_base.setdefault(base, []).append(name)
        return self._by_base

    def _proven(self, name: str) -> Standing:
        """In a table of reports: the operator without its overload, or a function that could not work without it."""
        base = name.partition(".")[0]
        for entry in (name, base, *PROVEN_BY.get(base, ())):
            if self._table.lists(entry):
                return Standing(Basis.LISTED if entry in (name, base) else Basis.EQUIVALENT, entry)
        return Standing(Basis.UNKNOWN)


def _served(stands: Standing, name: str) -> _Answer:
    if stands.basis is Basis.COMPOSITE:
        return _Answer(Support.COMPOSITE, reasons.COMPOSITE)
    if stands.basis is Basis.SAME_KERNEL:
        return _Answer(Support.STRUCTURED, reasons.SAME_KERNEL.format(entry=f"aten::{stands.entry}"))
    if stands.basis is Basis.EQUIVALENT:
        return _Answer(Support.KERNEL, reasons.EQUIVALENT.format(entry=f"aten::{stands.entry}"))
    if stands.basis is Basis.ALWAYS_THERE:
        return _Answer(Support.KERNEL, reasons.ALWAYS_THERE)
    return _Answer(Support.KERNEL, reasons.LISTED)

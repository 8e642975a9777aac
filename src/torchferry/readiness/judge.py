"""Judges every operator that a program called: what a vendor's adapter does with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from torchferry.errors import InputError
from torchferry.operators.names import CALLED_BEFORE, CALLED_ELSEWHERE, PROVEN_BY, TAKEN_WHOLE
from torchferry.operators.native_functions import OperatorFacts, operator_facts
from torchferry.operators.support import (
    OperatorStanding,
    SupportBasis,
    VendorTable,
    matches,
    moves_data,
    reported_as,
    served_by,
    standing,
)
from torchferry.readiness.advice import Adviser
from torchferry.readiness.model import (
    Capture,
    OperatorSite,
    OperatorSupport,
    Readiness,
    Signature,
    Use,
    UseJudgement,
    tensors_in,
)
from torchferry.text import Text, then
from torchferry.vendors.model import Limits, MissingOperator, Narrowing, Vendor
from torchferry.vendors.ops import load_ops

# The sentences that say why an operator was judged as it was.

LISTED = Text("The vendor's table lists a kernel for it.", "厂商的算子表中列有它的 kernel。")
SAME_KERNEL = Text(
    "The kernel of {entry}, listed in the vendor's table, computes it.",
    "由厂商算子表中列出的 {entry} 的 kernel 计算。",
)
EQUIVALENT = Text(
    "On a device {entry} replaces it, which the vendor's table lists.",
    "在设备上由 {entry} 代替，厂商的算子表中列有后者。",
)
ALWAYS_THERE = Text("Every plugin supports it.", "所有插件都支持它。")
COMPOSITE = Text(
    "PyTorch composes it of other operators, which are judged separately.",
    "PyTorch 用其他算子组成它，那些算子单独判断。",
)
NO_TENSOR = Text("It does not use tensors.", "它不涉及张量。")
LIMIT = Text("A kernel exists, with a limit: {limit}.", "有 kernel，但有限制：{limit}。")
DTYPE_REFUSED = Text("The device rejects tensors of {dtype}.", "设备拒绝 {dtype} 张量。")
DTYPE_NARROWER = Text("The device computes {dtype} as {becomes}.", "设备以 {becomes} 计算 {dtype}。")
DTYPE_CAST = Text(
    "On the device, a cast to {dtype} gives {becomes}.",
    "在设备上转换为 {dtype} 得到的是 {becomes}。",
)
DTYPE_OF_OPERATOR = Text(
    "The kernel accepts only {allowed}, here it gets {dtype}.",
    "该 kernel 只接受 {allowed}，此处得到 {dtype}。",
)
FALLS_BACK = Text(
    "The vendor's table for {version} lists no kernel: the plugin computes it on the CPU.",
    "厂商 {version} 的算子表中没有它的 kernel：插件在 CPU 上计算它。",
)
RAISES = Text(
    "The vendor's table for {version} lists no kernel: the plugin raises an error.",
    "厂商 {version} 的算子表中没有它的 kernel：插件会报错。",
)
ABSENT = Text(
    "The vendor's table for {version} lists no kernel, and how the plugin behaves then is unknown.",
    "厂商 {version} 的算子表中没有它的 kernel，插件此时的行为未知。",
)
SPECIAL_FALLS_BACK = Text(
    "The vendor's table for {version} lists it only for {kinds} tensors: the plugin computes others "
    "on the CPU.",
    "厂商 {version} 的算子表中它只用于 {kinds} 张量：其他张量由插件在 CPU 上计算。",
)
SPECIAL_RAISES = Text(
    "The vendor's table for {version} lists it only for {kinds} tensors: the plugin raises an error "
    "for others.",
    "厂商 {version} 的算子表中它只用于 {kinds} 张量：对其他张量插件会报错。",
)
NOT_COMPLETE = Text(
    "This vendor publishes no complete list of kernels, and nothing was reported about this operator.",
    "该厂商没有公开完整的 kernel 列表，也没有关于这个算子的报告。",
)
NOT_IN_PYTORCH = Text(
    "It is not in PyTorch's operator list, so the vendor's table does not cover it.",
    "它不在 PyTorch 的算子列表中，厂商的算子表也没有涉及。",
)
OTHER_LIBRARY = Text(
    "It belongs to {library}; the vendor's table covers only PyTorch's own operators.",
    "它属于 {library}；厂商的算子表只列出 PyTorch 自己的算子。",
)
COLLECTIVE = Text(
    "A collective: the vendor's process group, {backend}, runs it.",
    "集合通信：由厂商的进程组 {backend} 执行。",
)
SPARSE = Text(
    "The tensor is not dense; the vendor's table covers only dense tensors.",
    "该张量不是稠密的；厂商的算子表只针对稠密张量。",
)


_CASTS = ("_to_copy", "to")
_VIEWS_AND_COPIES = (
    "alias*", "as_strided*", "clone", "contiguous", "detach*", "diagonal*", "empty_like*", "expand*", "full_like*",
    "lift*", "new_*", "ones_like*", "permute*", "reshape*", "_reshape_alias", "select.*", "slice.*", "split*",
    "squeeze*", "t", "transpose*", "unbind*", "unfold", "_unsafe_view", "unsqueeze*", "view*", "zeros_like*",
)  # fmt: skip


def dtype_limit(
    use: Use, limits: Limits, allowed: tuple[str, ...], environment: Mapping[str, str]
) -> Text | None:
    """Why the dtypes of a call are a problem; None if they are none. `allowed` are those of the kernel, empty: any."""
    inputs = [spec.dtype for spec in use.signature.inputs]
    name = use.operator.partition("::")[2]
    if allowed and inputs and inputs[0] not in allowed:
        return DTYPE_OF_OPERATOR.format(allowed=", ".join(allowed), dtype=inputs[0])
    for dtype in use.signature.dtypes:
        limit = limits.dtypes.get(dtype)
        if limit is None or not limit.applies(environment):
            continue
        if limit.narrowing is Narrowing.REFUSED:
            return DTYPE_REFUSED.format(dtype=dtype)
        # Nothing is computed with the values where a factory makes them (empty, zeros), or they stay as they are.
        keeps_values = not inputs or _is_cast(use) or moves_data(name) or matches(name, _VIEWS_AND_COPIES)
        if limit.narrowing is Narrowing.COMPUTED_AS and not keeps_values:
            return DTYPE_NARROWER.format(dtype=dtype, becomes=limit.becomes)
        is_result = dtype in [spec.dtype for spec in use.signature.outputs] and dtype not in inputs
        if limit.narrowing is Narrowing.CAST_AS and is_result and _is_cast(use):
            return DTYPE_CAST.format(dtype=dtype, becomes=limit.becomes)
    return None


def _is_cast(use: Use) -> bool:
    return use.operator.partition("::")[2].partition(".")[0] in _CASTS


_Called = tuple[OperatorSite, str]  # where, as if from the program itself, and the operator


def device_uses(capture: Capture, is_whole: Callable[[str], bool]) -> list[Use]:
    """The uses that the device must serve. Of a composite operator: itself if it is taken whole, else its parts."""
    on_device = [use for use in capture.uses if capture.runs_on_device(use)]
    wholes = Wholes(on_device, is_whole)
    served, inner = [], []
    for use in on_device:
        if wholes.hide(use.site):
            inner.append(use)
        elif not use.expanded or is_whole(use.operator):
            served.append(use)
    return _with_time_of_parts(served, inner, wholes)


def _with_time_of_parts(served: list[Use], inner: list[Use], wholes: Wholes) -> list[Use]:
    """An operator that is taken whole takes the time of what it was made of, each of its uses by its calls."""
    seconds: Counter[_Called] = Counter()
    for use in inner:
        around = wholes.outermost(use.site)
        if around is not None:
            seconds[around] += use.seconds  # type: ignore[assignment]  # a counter counts fractions as well
    calls: Counter[_Called] = Counter()
    for use in served:
        calls[_called(use)] += use.calls
    longer = []
    for use in served:
        extra = seconds[_called(use)] / calls[_called(use)] * use.calls
        longer.append(replace(use, seconds=use.seconds + extra) if use.expanded and extra else use)
    return longer


class Wholes:
    """The operators that a device takes whole, and what is inside of them."""

    def __init__(self, uses: Iterable[Use], is_whole: Callable[[str], bool]) -> None:
        self._is_whole = is_whole
        self._expanded: dict[_Called, list[Use]] = {}
        self._hidden: dict[OperatorSite, bool] = {}
        for use in uses:
            if use.expanded:
                self._expanded.setdefault(_called(use), []).append(use)

    def hide(self, site: OperatorSite) -> bool:
        """Whether calls from here are made inside of a whole operator, however deep."""
        if not site.inside:
            return False
        if site not in self._hidden:
            self._hidden[site] = False  # an operator that calls itself from its own site ends here
            parents = self._expanded.get((_outside(site), site.inside), [])
            self._hidden[site] = self._is_whole(site.inside) or (
                bool(parents) and all(self.hide(parent.site) for parent in parents)
            )
        return self._hidden[site]

    def outermost(self, site: OperatorSite) -> _Called | None:
        """The whole operator around a hidden call that is not hidden itself: where it is called, and its name."""
        seen = set()
        while site not in seen:
            seen.add(site)
            key = (_outside(site), site.inside)
            around = self._expanded.get(key, [])
            if any(not self.hide(use.site) for use in around):
                return key
            if not around:
                return None
            site = around[0].site
        return None


def _called(use: Use) -> _Called:
    return _outside(use.site), use.operator


def _outside(site: OperatorSite) -> OperatorSite:
    return replace(site, inside="")


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
    if version and version not in ops.versions:
        known = ", ".join(ops.versions)
        rest = Text("its table has no versions: leave the version out", "其算子表不分版本：请去掉版本")
        if known:
            rest = Text(f"choose one of {known}", f"请从 {known} 中选择")
        unknown = Text(
            f"no operators are listed for {vendor.name}'s plugin {version}",
            f"没有 {vendor.name} 插件 {version} 的算子清单",
        )
        raise InputError(then(unknown, rest))
    return VendorTable(ops, version or vendor.limits.operator_version)


def predicted_fallbacks(readiness: Readiness) -> dict[str, int]:
    """Operators that the adapter will compute on the CPU, under the names that it reports, and how often."""
    facts = operator_facts(readiness.capture.torch)
    calls: Counter[str] = Counter()
    for judgement in readiness.judgements:
        if judgement.support is OperatorSupport.FALLBACK:
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


def _on_device(name: str) -> str:
    """The name under which an operator arrives at a device other than the CPU and CUDA."""
    name = CALLED_BEFORE.get(name, name)
    return CALLED_ELSEWHERE.get(name) or CALLED_ELSEWHERE.get(name.partition(".")[0]) or name


_Answer = tuple[OperatorSupport, Text]
_SERVED = {
    SupportBasis.COMPOSITE: (OperatorSupport.COMPOSITE, COMPOSITE),
    SupportBasis.SAME_KERNEL: (OperatorSupport.STRUCTURED, SAME_KERNEL),
    SupportBasis.EQUIVALENT: (OperatorSupport.KERNEL, EQUIVALENT),
    SupportBasis.ALWAYS_THERE: (OperatorSupport.KERNEL, ALWAYS_THERE),
}


class _Judging:
    """One vendor's table, asked many times."""

    def __init__(self, vendor: Vendor, table: VendorTable, facts: Mapping[str, OperatorFacts]) -> None:
        self._vendor = vendor
        self._table = table
        self._facts = facts
        self._siblings = served_by(facts)
        self._missing = vendor.limits.missing_operator_in(os.environ)
        self._stands: dict[str, OperatorStanding] = {}
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

    def judgement(self, use: Use) -> UseJudgement:
        support, reason = self._answer(use)
        falls_back = support is OperatorSupport.FALLBACK
        return UseJudgement(
            use=use,
            support=support,
            reason=reason,
            moved_bytes=moved_bytes(use.signature) * use.calls if falls_back else 0,
            advice=self._adviser.advise(use, support) if support.is_problem else (),
        )

    def _answer(self, use: Use) -> _Answer:
        namespace, _, name = use.operator.partition("::")
        if namespace != _ATEN:
            return self._of_library(use, namespace)
        if any(spec.layout != "strided" for spec in use.signature.inputs):
            is_listed = "sparse" in self._table.ops.special.get(name, ())
            return (OperatorSupport.KERNEL, LISTED) if is_listed else (OperatorSupport.UNKNOWN, SPARSE)
        stands = self._standing(use.operator)
        if stands.basis is SupportBasis.ABSENT:
            return self._absent(name)
        if stands.basis is SupportBasis.UNKNOWN and name not in self._table.ops.limits:
            known = name in self._facts
            return OperatorSupport.UNKNOWN, NOT_COMPLETE if known else NOT_IN_PYTORCH
        entry = stands.entry or name
        if words := self._table.ops.limits.get(entry):
            return OperatorSupport.LIMITED, LIMIT.format(limit=words)
        dtypes = self._table.ops.dtypes.get(entry, ())
        if limit := dtype_limit(use, self._vendor.limits, dtypes, os.environ):
            return OperatorSupport.LIMITED, limit
        support, sentence = _SERVED.get(stands.basis, (OperatorSupport.KERNEL, LISTED))
        return support, sentence.format(entry=f"aten::{stands.entry}")

    def _absent(self, name: str) -> _Answer:
        kinds = self._table.ops.special.get(name)
        version = self._table.version
        if self._missing is MissingOperator.UNKNOWN:
            return OperatorSupport.MISSING, ABSENT.format(version=version)
        falls_back = self._missing is MissingOperator.FALLS_BACK
        sentence = FALLS_BACK if falls_back else RAISES
        if kinds:
            sentence = SPECIAL_FALLS_BACK if falls_back else SPECIAL_RAISES
        text = sentence.format(version=version, kinds=", ".join(kinds or ()))
        return OperatorSupport.FALLBACK if falls_back else OperatorSupport.MISSING, text

    def _of_library(self, use: Use, namespace: str) -> _Answer:
        if self._table.lists(use.operator):
            return OperatorSupport.KERNEL, LISTED
        if not (use.signature.inputs or use.signature.outputs):
            return OperatorSupport.KERNEL, NO_TENSOR
        if namespace in _COLLECTIVES and self._vendor.dist_backend:
            return OperatorSupport.KERNEL, COLLECTIVE.format(backend=self._vendor.dist_backend)
        return OperatorSupport.UNKNOWN, OTHER_LIBRARY.format(library=namespace)

    def _standing(self, operator: str) -> OperatorStanding:
        if operator not in self._stands:
            self._stands[operator] = self._look_up(operator.partition("::")[2])
        return self._stands[operator]

    def _look_up(self, name: str) -> OperatorStanding:
        arrives = _on_device(name)
        fact = self._facts.get(arrives)
        if fact is None:
            if self._table.lists(name):
                return OperatorStanding(SupportBasis.LISTED, name)
            # The overload is not known: what holds for all that are not made of others.
            every = [self._look_up(overload) for overload in self._overloads.get(name, ())]
            known = [each for each in every if each.basis is not SupportBasis.COMPOSITE] or every
            is_agreed = len({each.basis.has_kernel for each in known}) == 1
            return known[0] if is_agreed else OperatorStanding(SupportBasis.UNKNOWN)
        stands = standing(fact, self._siblings.get(arrives, ()), self._table)
        if stands.basis is SupportBasis.UNKNOWN:
            return self._proven(arrives)
        if stands.basis is SupportBasis.LISTED and arrives != name:
            return OperatorStanding(SupportBasis.EQUIVALENT, arrives)
        return stands

    @cached_property
    def _overloads(self) -> Mapping[str, list[str]]:
        """The overloads of each operator, but for those that only write elsewhere."""
        found: dict[str, list[str]] = {}
        for name in self._facts:
            base, dot, overload = name.partition(".")
            if dot and "out" not in overload:
                found.setdefault(base, []).append(name)
        return found

    def _proven(self, name: str) -> OperatorStanding:
        """In a table of reports: the operator without its overload, or a function that could not work without it."""
        base = name.partition(".")[0]
        for entry in (name, base, *PROVEN_BY.get(base, ())):
            if self._table.lists(entry):
                return OperatorStanding(
                    SupportBasis.LISTED if entry in (name, base) else SupportBasis.EQUIVALENT, entry
                )
        return OperatorStanding(SupportBasis.UNKNOWN)

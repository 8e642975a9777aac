"""How the simulated device treats each operator: what the vendor's table says of it, whether it goes straight to
the CPU's kernel, and on which devices its arguments may lie."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.operators.native_functions import DeviceCheck, OperatorFacts
from torchferry.operators.support import (
    SupportBasis,
    VendorTable,
    is_composite,
    matches,
    moves_data,
    reported_as,
    served_by,
    standing,
)
from torchferry.sim.native import AllowedDevices, OperatorRule, OperatorVerdict

_DEVICES = {
    DeviceCheck.SAME: AllowedDevices.SAME,
    DeviceCheck.ITERATOR: AllowedDevices.HOST_SCALARS,
    DeviceCheck.NONE: AllowedDevices.ANY,
}
# Composite ones that the device takes whole: the CPU's own choice of convolution (`convolution` itself must stay
# composite: torch.jit.trace records the `_convolution` inside it), and two that look for the CPU by name.
_TAKEN_WHOLE = ("_convolution", "convolution_backward", "copy_", "conj_physical_", "mode.values")
# Composite ones that training calls: whole where the vendor has a kernel. Where it has none, PyTorch makes them of
# other operators, and those may be missing.
_WHOLE_IF_THERE = (
    "_foreach_*", "sum", "mean", "embedding", "stack", "binary_cross_entropy_with_logits", "logsumexp",
    "affine_grid_generator", "smooth_l1_loss_backward", "_pack_padded_sequence",
)  # fmt: skip
# By contract indices may lie on the CPU, where PyTorch's list says TensorIterator, and lengths of sequences must.
_PARTLY_ON_HOST = ("index.*", "index_put*", "_index_put_impl_*", "_unsafe_index*", "_pack_padded_sequence")


def routed(facts: Mapping[str, OperatorFacts], table: VendorTable) -> list[str]:
    """Operators for which PyTorch would take a composite kernel unless told otherwise."""
    siblings = served_by(facts)

    def is_routed(name: str, fact: OperatorFacts) -> bool:
        if matches(fact.name, _TAKEN_WHOLE):
            return True
        if matches(fact.name, _WHOLE_IF_THERE):
            return standing(fact, siblings.get(name, ()), table).basis is not SupportBasis.COMPOSITE
        return ("CPU" in fact.kernels or bool(fact.structured_delegate)) and is_composite(fact)

    return [name for name, fact in facts.items() if not fact.generated and is_routed(name, fact)]


def rules(
    facts: Mapping[str, OperatorFacts], table: VendorTable, missing: OperatorVerdict
) -> list[OperatorRule]:
    """One rule for every operator of PyTorch's list; `missing` is what the adapter does without a kernel."""
    siblings = served_by(facts)
    verdicts = {SupportBasis.UNKNOWN: OperatorVerdict.UNKNOWN, SupportBasis.ABSENT: missing}
    return [
        OperatorRule(
            name=f"aten::{name}",
            reported_as=reported_as(fact),
            verdict=verdicts.get(standing(fact, siblings.get(name, ()), table).basis, OperatorVerdict.KERNEL),
            devices=AllowedDevices.HOST_TENSORS
            if matches(fact.name, _PARTLY_ON_HOST)
            else _DEVICES[fact.device_check],
            moves_data=moves_data(name),
        )
        for name, fact in facts.items()
    ]

"""What the converter writes for a vendor computes what the original did."""

from __future__ import annotations

from tests.conversion.similar.cases import ATTENTION, LAYERS, OPERATORS, OPTIMIZERS, Case
from tests.conversion.similar.running import check_case
from tests.sim.checking import Target
from torchferry.vendors.similar import load_similar


def _check_all(cases: list[Case], target: Target) -> None:
    entries = load_similar(target.vendor.folder)
    for case in cases:
        if case.entry(entries) is not None:
            check_case(case, target.vendor.name, target.type)


def check_attention(target: Target) -> None:
    _check_all(ATTENTION, target)


def check_layers(target: Target) -> None:
    _check_all(LAYERS, target)


def check_operators(target: Target) -> None:
    _check_all(OPERATORS, target)


def check_optimizers(target: Target) -> None:
    _check_all(OPTIMIZERS, target)

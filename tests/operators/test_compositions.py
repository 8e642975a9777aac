"""Every composition gives what the original gives, in both directions, and calls only what devices have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.operators.composition_cases import (
    CASES,
    FLOATS,
    cases_of,
    function_of,
    operators_of,
    original_of,
    run,
)
from torchferry.operators.compositions import Composition, compositions, compositions_for
from torchferry.operators.native_functions import operator_facts
from torchferry.operators.support import SupportBasis, VendorTable, served_by, standing
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, vendor_names

each = pytest.mark.parametrize("composition", compositions(), ids=lambda composition: composition.function)


@pytest.fixture(autouse=True)
def _fast_path_is_on_again() -> object:
    yield
    torch.backends.mha.set_fastpath_enabled(True)


def test_every_composition_has_inputs() -> None:
    assert CASES.keys() == {composition.function for composition in compositions()}


# scales of one tensor per channel are float32 whatever the input is; models are made in float32
_ONE_DTYPE = ("fake_quantize_per_channel_affine", "without_fast_path")


@each
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_it_gives_what_the_original_gives(composition: Composition, dtype: torch.dtype) -> None:
    if dtype is torch.float64 and composition.function in _ONE_DTYPE:
        pytest.skip("the original takes float32 alone")
    precision = {"rtol": 2e-4, "atol": 2e-5} if dtype is torch.float32 else {"rtol": 1e-6, "atol": 1e-8}
    for case in cases_of(composition.function, dtype):
        expected = run(original_of(composition), case, composition.differentiable)
        got = run(function_of(composition), case, composition.differentiable)
        torch.testing.assert_close(got.results, expected.results, equal_nan=True, **precision)
        torch.testing.assert_close(got.gradients, expected.gradients, equal_nan=True, **precision)


def called(composition: Composition, function: Callable[..., object]) -> list[str]:
    cases = cases_of(composition.function, torch.float32)
    return operators_of(function, cases, composition.differentiable)


@each
def test_the_operators_that_it_uses_are_written_down(composition: Composition) -> None:
    assert list(composition.uses) == called(composition, function_of(composition))


@each
def test_the_original_calls_what_it_replaces_and_the_composition_does_not(composition: Composition) -> None:
    replaced = [
        name
        for name in called(composition, original_of(composition))
        if composition in compositions_for(name)
    ]
    assert replaced
    assert not [name for name in composition.uses if composition in compositions_for(name)]


@each
def test_a_vendor_that_lacks_the_original_has_what_it_uses(composition: Composition) -> None:
    facts = operator_facts()
    siblings = served_by(facts)
    lacking, able = [], []
    for vendor in map(get_vendor, vendor_names()):
        table = VendorTable(load_ops(Path(vendor.folder)), vendor.limits.operator_version)
        if not table.complete:
            continue

        def has(name: str, table: VendorTable = table) -> bool:
            return standing(facts[name], siblings.get(name, ()), table).basis is not SupportBasis.ABSENT

        overloads = [name for name in facts if composition in compositions_for(name)]
        assert overloads
        if not all(has(name) for name in overloads):
            lacking.append(vendor.name)
            able += [vendor.name] if all(map(has, composition.uses)) else []
    assert lacking, "every vendor has the original"
    assert able, f"{lacking} lack the original, and what the composition uses too"

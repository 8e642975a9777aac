"""The search for the smallest case that fails alike, on faults that are conditions on the case itself."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchferry.readiness.cases.model import (
    Callee,
    CalleeKind,
    Case,
    CaseOutcome,
    CaseValue,
    CaseVerdict,
    TensorInput,
)
from torchferry.readiness.cases.notation import described_call, parse_input
from torchferry.readiness.cases.shrinking import MOST_DEATHS, Smallest, Try, failure_key, shrink

DIFFERS = CaseOutcome(CaseVerdict.DIFFERS, "test_forward", "output: the values differ: 3 of 4", "values")
EQUAL = CaseOutcome(CaseVerdict.EQUAL)
INVALID = CaseOutcome(CaseVerdict.INVALID)


def _case(*inputs: str) -> Case:
    pairs = [parse_input(text) for text in inputs]
    args = tuple(value for name, value in pairs if not name)
    kwargs = tuple((name, value) for name, value in pairs if name)
    return Case(Callee(CalleeKind.FUNCTION, "torch.f", "torch.f"), args, kwargs)


def _tensor(value: CaseValue) -> TensorInput:
    assert isinstance(value, TensorInput)
    return value


def _shrunk(case: Case, attempt: Try) -> Smallest:
    found = shrink(case, DIFFERS, attempt)
    assert attempt(found.case) == DIFFERS
    return found


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 40), st.integers(0, 40))
def test_sizes_that_have_to_be_so_large(rows: int, columns: int, more_rows: int, more_columns: int) -> None:
    def attempt(case: Case) -> CaseOutcome:
        shape = _tensor(case.args[0]).shape if case.args else ()
        return DIFFERS if len(shape) == 2 and shape[0] >= rows and shape[1] >= columns else EQUAL

    found = _shrunk(_case(f"{rows + more_rows}x{columns + more_columns}:int32:ones"), attempt)
    assert _tensor(found.case.args[0]).shape == (rows, columns)


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(0, 30))
def test_sizes_that_belong_together(inner: int, more: int) -> None:
    def attempt(case: Case) -> CaseOutcome:
        if len(case.args) != 2:
            return INVALID
        left, right = (_tensor(value).shape for value in case.args)
        if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
            return INVALID
        return DIFFERS if left[1] >= inner else EQUAL

    size = inner + more
    found = _shrunk(_case(f"31x{size}:normal", f"{size}x33:normal"), attempt)
    assert [_tensor(value).shape for value in found.case.args] == [(1, inner), (inner, 1)]


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(5, 8))
def test_lists(fewest: int, length: int) -> None:
    def attempt(case: Case) -> CaseOutcome:
        items = case.args[0] if case.args else ()
        return DIFFERS if isinstance(items, tuple) and len(items) >= fewest else EQUAL

    found = _shrunk(_case(f"list({', '.join(['2x3'] * length)})"), attempt)
    assert isinstance(found.case.args[0], tuple) and len(found.case.args[0]) == fewest


def test_everything_goes_that_does_not_matter() -> None:
    case = _case("7x9:float16:normal+nan:transposed", "4", "dim=3", "keepdim=True", "eps=0.25")
    found = _shrunk(case, lambda each: DIFFERS if each.args else EQUAL)
    assert described_call(found.case) == "torch.f(scalar:float32:full(0))"


def test_the_same_case_gives_the_same_result() -> None:
    def attempt(case: Case) -> CaseOutcome:
        return DIFFERS if sum(tensor.elements for tensor in case.tensors) % 3 == 1 else EQUAL

    case = _case("8x8", "3x5", "k=2")
    found = [described_call(_shrunk(case, attempt).case) for _ in range(2)]
    assert found[0] == found[1]


def test_another_failure_does_not_count() -> None:
    raises = CaseOutcome(CaseVerdict.RAISES, "test_forward", "RuntimeError: no memory")

    def attempt(case: Case) -> CaseOutcome:
        elements = case.tensors[0].elements if case.tensors else 0
        return DIFFERS if elements >= 20 else raises

    assert _shrunk(_case("5x8"), attempt).case.tensors[0].elements == 20


def test_trials_are_bounded() -> None:
    found = shrink(_case("999x999"), DIFFERS, lambda case: EQUAL, most=7)
    assert (found.trials, found.complete) == (7, False)


def test_processes_that_die_are_bounded() -> None:
    crashes = CaseOutcome(CaseVerdict.CRASHES, message="ended by SIGABRT: words")
    found = shrink(_case("6x6"), crashes, lambda case: crashes if len(case.tensors) == 1 else EQUAL)
    assert found.outcome == crashes and described_call(found.case) == "torch.f(scalar:float32:full(0))"
    elsewhere = CaseOutcome(CaseVerdict.CRASHES, message="ended by SIGSEGV: words")
    found = shrink(_case("60x60x60x60"), crashes, lambda case: elsewhere)
    assert not found.complete and found.trials == MOST_DEATHS


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("size [8, 20] is too large", "size [1, 16] is too large", True),
        ("size is too large", "size is too small", False),
        ("at most 4e-3", "at most 12.5", True),
        ("tensor at 0x7fb8e357aee0", "tensor at 0x55", True),
        ("size [8, 20] and 3x4x5", "size [8] and 3x5", True),
    ],
)
def test_messages_but_for_their_numbers(one: str, other: str, alike: bool) -> None:
    keys = [failure_key(CaseOutcome(CaseVerdict.RAISES, "test_forward", text)) for text in (one, other)]
    assert (keys[0] == keys[1]) is alike


def test_a_wrong_gradient_is_another_failure_than_a_wrong_result() -> None:
    gradient = CaseOutcome(
        CaseVerdict.DIFFERS, "test_backward", "gradient of argument 0: the values differ", "values"
    )
    assert failure_key(gradient) != failure_key(DIFFERS)


def test_hangs_are_alike_however_long_they_were_waited_for() -> None:
    keys = {
        failure_key(CaseOutcome(CaseVerdict.HANGS, message=f"no answer after {each}"))
        for each in ("10 s", "120 s")
    }
    assert len(keys) == 1


def test_what_fails_now_and_then() -> None:
    outcomes = itertools.cycle([DIFFERS, EQUAL, EQUAL])
    found = shrink(_case("4x4"), DIFFERS, lambda case: next(outcomes))
    assert not found.steady
    assert _shrunk(_case("4x4"), lambda case: DIFFERS if case.args else EQUAL).steady


def test_the_smallest_offset() -> None:
    found = _shrunk(
        _case("3x4:zeros:transposed:offset(7)"),
        lambda case: DIFFERS if case.tensors and case.tensors[0].offset else EQUAL,
    )
    assert described_call(found.case) == "torch.f(scalar:float32:full(0):offset(1))"

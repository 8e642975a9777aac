"""The conformance suite finds faults that are planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tools.conformance.checks import Operator, Sample
from tools.conformance.comparison import compare
from tools.conformance.examine import CPU, Examination
from tools.conformance.observations import Raised, Seen, look
from tools.conformance.places import Place, whole_memory
from tools.conformance.records import Kind, Outcome
from tools.conformance.upcasting import Upcasting, in_float32


def differences(
    right: Callable[..., Any], wrong: Callable[..., Any], sample: Sample | None = None, **facts: Any
) -> set[tuple[str, Kind]]:
    """(check, kind) of what is found when the device has a fault."""
    operator = Operator("planted", right, **facts)
    examination = Examination(operator, torch.float32, CPU.device, on_device=replace(operator, call=wrong))
    examination.run([sample or Sample(_numbers())])
    return {(found.check, found.kind) for found in examination.differences.values()}


def _numbers(with_grad: bool = False) -> torch.Tensor:
    return torch.arange(1.0, 13.0).reshape(3, 4).requires_grad_(with_grad)


def _add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def _halves(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x[:1], x[1:]


def _raise(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("no")


def _with_nan(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 3, x, torch.nan)


def _scribble(x: torch.Tensor) -> torch.Tensor:
    result = x + 1
    x[0, 0] = 100
    return result


@pytest.mark.parametrize(
    ("right", "wrong", "kinds"),
    [
        (_add_one, _add_one, set()),
        (_with_nan, _with_nan, set()),
        (_raise, _raise, set()),
        (_add_one, lambda x: x + 1.01, {Kind.VALUE}),
        (_add_one, lambda x: (x + 1) * (1 + 2e-7), {Kind.ROUNDING}),
        (lambda x: x * 0, lambda x: x * -0.0, {Kind.ROUNDING}),
        (_with_nan, lambda x: torch.where(x > 2, x, torch.nan), {Kind.VALUE}),
        (_add_one, lambda x: (x + 1).double(), {Kind.DTYPE}),
        (_add_one, lambda x: (x + 1).t().contiguous().t(), {Kind.STRIDE, Kind.VIEW}),
        (
            lambda x: torch.empty_strided((3, 4), (4, 1)).fill_(1),
            lambda x: torch.ones(4, 3).mT,
            {Kind.STRIDE, Kind.VIEW},
        ),
        (lambda x: x + 1, lambda x: torch.empty_strided((3, 4), (1, 3)).copy_(x + 1), {Kind.STRIDE}),
        (_add_one, lambda x: (x + 1)[:2].clone(), {Kind.SHAPE}),
        (lambda x: x[1:], lambda x: x[1:].clone(), {Kind.VIEW}),
        (lambda x: x[1:], lambda x: x.clone()[1:], {Kind.VIEW}),
        (lambda x: x.view(-1), lambda x: x.clone().view(-1), {Kind.VIEW}),
        (lambda x: x, lambda x: x.view_as(x), {Kind.VIEW}),
        (lambda x: x, lambda x: x.clone(), {Kind.VIEW}),
        (_halves, lambda x: (x[:1], x[1:].clone()), {Kind.VIEW}),
        (_halves, lambda x: (x[:1],), {Kind.STRUCTURE}),
        (_add_one, lambda x: 1.0, {Kind.STRUCTURE}),
        (lambda x: 1.0, lambda x: 2.0, {Kind.VALUE}),
        (lambda x: float("nan"), lambda x: float("nan"), set()),
        (_add_one, _scribble, {Kind.VALUE}),
        (_add_one, _raise, {Kind.ERROR}),
        (_raise, _add_one, {Kind.ERROR}),
        (_raise, lambda x: x.reshape(5), {Kind.ERROR}),
    ],
)
def test_a_fault_in_a_plain_call_is_found(
    right: Callable[..., Any], wrong: Callable[..., Any], kinds: set[Kind]
) -> None:
    assert differences(right, wrong) == {("forward", kind) for kind in kinds}


def test_a_result_on_the_wrong_device_is_found() -> None:
    seen = look(CPU, True, {"output": torch.ones(2)})
    elsewhere = Seen({"output": replace(seen.things["output"], is_on_place=False, device="meta")})
    assert compare(seen, elsewhere) == [(Kind.DEVICE, "output", "is on meta")]


def test_an_error_of_another_type_is_named() -> None:
    ((kind, _, words),) = compare(Raised("ValueError", "one"), Raised("RuntimeError", "two"))
    assert kind is Kind.ERROR
    assert "ValueError (one)" in words
    assert "RuntimeError (two)" in words


class _Square(torch.autograd.Function):
    """Has the wrong derivative."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


@pytest.mark.parametrize(
    ("wrong", "kinds"),
    [
        (lambda x: x * x, set()),
        (_Square.apply, {Kind.VALUE}),
        (lambda x: (x * x).detach(), {Kind.GRADIENT, Kind.STRUCTURE}),
        (lambda x: x.detach() * x, {Kind.VALUE}),
    ],
)
def test_a_fault_in_the_backward_pass_is_found(wrong: Callable[..., Any], kinds: set[Kind]) -> None:
    found = differences(lambda x: x * x, wrong, Sample(_numbers(True)), is_differentiable=True)
    assert found == {("backward", kind) for kind in kinds}


def _into(
    result: torch.Tensor, out: torch.Tensor | None, write: Callable[[torch.Tensor, torch.Tensor], None]
) -> torch.Tensor:
    if out is None:
        return result
    if out.shape != result.shape:
        out.resize_(result.shape)
    write(out, result)
    return out


def _proper(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    return _into(x + 1, out, lambda to, result: to.copy_(result))


def _as_if_contiguous(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    def write(to: torch.Tensor, result: torch.Tensor) -> None:
        whole_memory(to)[: result.numel()] = result.flatten()

    return _into(x + 1, out, write)


def _not_resized(x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    return x + 1 if out is None else out.copy_(x + 1)


def test_a_fault_in_out_is_found() -> None:
    assert differences(_proper, _proper, takes_out=True) == set()
    assert differences(_proper, _as_if_contiguous, takes_out=True) == {("out= not contiguous", Kind.VALUE)}
    found = differences(_proper, _not_resized, takes_out=True)
    assert ("out= of another size", Kind.SHAPE) in found
    assert ("out=", Kind.SHAPE) not in found


def test_a_fault_in_the_in_place_form_is_found() -> None:
    operator = Operator("planted", _add_one, lambda x: x.add_(1), is_differentiable_in_place=True)
    wrong = replace(operator, in_place=_add_one)
    examination = Examination(operator, torch.float32, CPU.device, on_device=wrong)
    examination.run([Sample(_numbers(True))])
    assert ("in-place", Kind.VALUE) in examination.differences
    assert ("in-place", Kind.VIEW) in examination.differences
    right = Examination(operator, torch.float32, CPU.device)
    right.run([Sample(_numbers(True))])
    assert right.result(0.0).outcome is Outcome.PASS
    assert right.checks == 3


def test_an_operator_that_never_runs_is_not_called_a_pass() -> None:
    examination = Examination(Operator("planted", _raise), torch.float32, CPU.device)
    examination.run([Sample(_numbers())])
    assert (examination.result(0.0).outcome, examination.result(0.0).reason) == (
        Outcome.SKIPPED,
        "cpu-raises",
    )
    without_samples = Examination(Operator("planted", _add_one), torch.float32, CPU.device).result(0.0)
    assert (without_samples.outcome, without_samples.reason) == (Outcome.SKIPPED, "no-samples")


def test_samples_keep_their_strides_and_what_they_share() -> None:
    base = torch.arange(24.0)
    tree = {
        "rows": base.view(4, 6),
        "column": base.view(4, 6)[:, 2],
        "wide": torch.ones(1).expand(3),
        "at": "cpu",
    }
    moved = Place(torch.device("cpu")).bring(tree)
    for name in ("rows", "column", "wide"):
        assert moved[name].stride() == tree[name].stride()
        assert moved[name].equal(tree[name])
    moved["column"].zero_()
    assert moved["rows"][:, 2].eq(0).all()
    assert base[2] == 2
    assert moved["at"] == torch.device("cpu")
    lazy = torch.tensor([1 + 2j]).conj()
    again = Place(torch.device("cpu")).bring(lazy)
    assert again.is_conj()
    assert again.equal(lazy)


def test_a_kernel_that_the_cpu_lacks_is_computed_in_float32_and_rounded() -> None:
    x = torch.linspace(-1, 1, 64, dtype=torch.float16).reshape(1, 1, 4, 4, 4)
    pool = torch.nn.functional.avg_pool3d
    with pytest.raises(RuntimeError, match="not implemented for"):
        pool(x, 2)
    out = torch.empty(0, dtype=torch.float16)
    with Upcasting(torch.float16):
        pooled = pool(x, 2)
        torch._C._nn.avg_pool3d(x, 2, out=out)
        with pytest.raises(RuntimeError, match="shape"):
            x.reshape(5)
    assert pooled.dtype is torch.float16
    assert pooled.equal(pool(x.float(), 2).half())
    assert out.equal(pooled)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_an_operator_that_refuses_half_precision_is_computed_whole_in_float32() -> None:
    x = torch.linspace(-1, 1, 16).half().requires_grad_()
    with pytest.raises(RuntimeError, match="Unsupported dtype Half"):
        torch.fft.fft(x)
    whole = in_float32(Operator("fft.fft", torch.fft.fft), torch.float16)
    result = whole.call(x)
    assert result.dtype is torch.complex32
    assert torch.view_as_real(result).equal(torch.view_as_real(torch.fft.fft(x.float()).to(torch.complex32)))
    gradient = torch.autograd.grad(result.to(torch.complex64).abs().sum(), x)[0]
    assert gradient.dtype is torch.float16
    out = torch.empty(0, dtype=torch.complex32)
    assert whole.call(x.detach(), out=out) is out
    assert torch.view_as_real(out).equal(torch.view_as_real(result))
    absolute = in_float32(Operator("abs", torch.abs, torch.Tensor.abs_), torch.float16)
    changed = torch.tensor([-1.0, 2.0]).half()
    assert absolute.in_place is not None
    assert absolute.in_place(changed) is changed
    assert changed.tolist() == [1, 2]

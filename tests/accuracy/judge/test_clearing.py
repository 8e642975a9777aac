"""What is cleared without double precision is what double precision calls right, down to the smallest mistake that it
finds; and the sums of the compiled kernel are those of the formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.judge import clearing, execution, margins, products, references
from torchferry.accuracy.judge.execution import Setting, doubled_inputs, make_arguments, read_inputs
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, Judgement, Verdict
from torchferry.accuracy.judge.references import Reference
from torchferry.accuracy.model import Call

from .recorded import call_of, claimed, record, seeded

bf16 = torch.bfloat16


def a(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def of_gradient(dtype: torch.dtype) -> Any:
    return torch.ops.aten.convolution_backward(
        a(4, 8, 12, 12, dtype=dtype), a(4, 6, 12, 12, dtype=dtype), a(8, 6, 3, 3, dtype=dtype), [8], [1, 1], [1, 1], [1, 1],
        False, [0, 0], 1, [True, True, True],
    )  # fmt: skip


def attention(dtype: torch.dtype) -> torch.Tensor:
    return functional.scaled_dot_product_attention(*(a(2, 2, 40, 16, dtype=dtype) for _ in range(3)))


PROGRAMS: dict[str, tuple[Callable[[torch.dtype], Any], str]] = {
    "mm": (lambda dtype: a(70, 200, dtype=dtype) @ a(200, 60, dtype=dtype), "mm"),
    "bmm": (lambda dtype: a(3, 40, 90, dtype=dtype) @ a(3, 90, 30, dtype=dtype), "bmm"),
    "addmm": (lambda dtype: torch.addmm(a(60, dtype=dtype), a(70, 90, dtype=dtype), a(90, 60, dtype=dtype)), "addmm"),
    "convolution": (
        lambda dtype: functional.conv2d(a(4, 6, 12, 12, dtype=dtype), a(8, 6, 3, 3, dtype=dtype), a(8, dtype=dtype), padding=1),
        "convolution",
    ),
    "gradients of a convolution": (of_gradient, "convolution_backward"),
    "attention": (attention, "_scaled_dot_product_flash_attention_for_cpu"),
}  # fmt: skip
Mistake = Callable[[torch.Tensor, float], torch.Tensor]


def one_element(right: torch.Tensor, size: float) -> torch.Tensor:
    wrong = right.clone()
    wrong.view(-1)[right.numel() // 3] += size * right.square().mean().sqrt()
    return wrong


def row(right: torch.Tensor, size: float) -> torch.Tensor:
    wrong = right.clone()
    wrong[-1] += size * right.square().mean().sqrt() * torch.randn(right[-1].shape, dtype=right.dtype)
    return wrong


MISTAKES: dict[str, Mistake] = {
    "one element": one_element,
    "a row": row,
    "scale": lambda right, size: right * (1 + size),
    "offset": lambda right, size: right + size * right.square().mean().sqrt(),
    "noise": lambda right, size: right + size * right.square().mean().sqrt() * torch.randn(right.shape, dtype=right.dtype),
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_work_is_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "_LEAST_WORK", 0)


def judged(recorded: Record, call: Call, result: torch.Tensor) -> tuple[Judgement | None, Judgement]:
    """Whether it is cleared, and what is said of it without that."""
    wrong, source = claimed(recorded, call, result)
    thorough = Judge(source, None, is_thorough=True)
    return clearing.clear(wrong, source), thorough.judge(CallPair(wrong, None))


@pytest.mark.parametrize("dtype", [torch.float32, bf16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_cleared_is_right_in_double_precision(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    program, operator = PROGRAMS[name]
    with seeded(), record(tmp_path / "a.h5", lambda: program(dtype)) as recorded:
        call = call_of(recorded, operator)
        right = Reference(call, recorded).right[0]
        assert right is not None
        cleared, thorough = judged(recorded, call, right.to(dtype))
        # without AVX-512, other results of the same call in half precision are farther from single precision
        assert cleared is not None or (dtype is bf16 and thorough.verdict is Verdict.NORMAL)
        found, missed = 0, []
        for kind, mistake in MISTAKES.items():
            for step in range(-24, 0, 2):
                cleared, thorough = judged(recorded, call, mistake(right, 2.0**step).to(dtype))
                is_found = thorough.verdict in (Verdict.SUSPICIOUS, Verdict.FAULT, Verdict.REDUCED)
                found += is_found
                if is_found and cleared is not None:
                    missed.append(f"{kind} 2^{step}: {thorough.why}")
    assert found > 10 and missed == []


def test_a_call_with_the_bits_of_the_cpu_is_cleared(tmp_path: Path) -> None:
    with seeded(), record(tmp_path / "a.h5", lambda: a(30, 40) * a(30, 40)) as recorded:
        call = call_of(recorded, "mul.Tensor")
        cleared = clearing.clear(call, recorded)
        result = recorded.tensor(call.outputs[0])
        result[3, 3] = torch.nextafter(result[3, 3], torch.tensor(9.0))
        wrong, source = claimed(recorded, call, result)
        assert cleared is not None and cleared.basis == "bits"
        assert clearing.clear(wrong, source) is None


@pytest.mark.parametrize("name", [each for each in PROGRAMS if each != "attention"])
def test_how_far_products_move_is_found_from_squares(name: str, tmp_path: Path) -> None:
    """As it is found by moving all inputs, in the mean; of convolutions a third of it, the least that is assumed."""
    program, operator = PROGRAMS[name]
    with seeded(), record(tmp_path / "a.h5", lambda: program(torch.float32)) as recorded:
        call = call_of(recorded, operator)
        reference = Reference(call, recorded)
        given = make_arguments(call, doubled_inputs(read_inputs(recorded, call)), Setting())
        for output, moved in enumerate(reference.moved):
            known = products.moved_by_rounding(call, given, output)
            assert moved is not None and known is not None
            typical, share = float(moved.square().mean().sqrt()), margins.FLOOR if not known.dim() else 1.0
            assert float(known.square().mean().sqrt()) == pytest.approx(share * typical, rel=0.2)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("operator", ["mm", "convolution", "add.Tensor", "native_batch_norm_backward"])
def test_the_kernel_has_the_figures_of_the_formulas(
    operator: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right results, ones with noise, and ones that lean; with zeros, and sizes that fill no vector."""
    of_class, kind = margins.margins_of(f"aten::{operator}"), getattr(torch, dtype)
    with seeded():
        for count in (1, 77, 5000):
            right = torch.randn(count, dtype=torch.float64)
            right[::7] = 0
            noise = right * (1 + 1e-2 * torch.randn(count, dtype=torch.float64))
            for result in (right, noise, right * (1 + 2.0**-9)):
                terms = margins.Terms(100.0, addend=torch.ones(count, dtype=torch.float64), least=1e-9)
                question = (result.to(kind), right, right.abs() * 1e-7, dtype, of_class, terms)
                one = margins.compare(*question).errors
                with monkeypatch.context() as patched:
                    patched.setattr(margins, "_errors_in_one_pass", lambda *_: None)
                    other = margins.compare(*question).errors
                for figure in ("largest", "mean_square", "bias", "relative"):
                    mine, theirs = getattr(one, figure), getattr(other, figure)
                    assert math.isclose(mine, theirs, rel_tol=0.02, abs_tol=1e-3), figure


def test_products_go_to_a_gpu_and_come_back_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU stands for the GPU; one without memory is no hindrance."""
    asked: list[str] = []
    in_double = execution.execute_doubled

    def execute(call: Call, inputs: Any, factors: Any = None) -> Any:
        asked.append(call.operator)
        if len(asked) > 1:
            raise RuntimeError("CUDA out of memory")
        return in_double(call, inputs, factors)

    monkeypatch.setattr(references, "_MUCH", 0)
    monkeypatch.setattr(references, "gpu", lambda: "cpu")
    monkeypatch.setattr(execution, "gpu", lambda: "cpu")
    with seeded(), record(tmp_path / "a.h5", lambda: a(30, 40) @ a(40, 20)) as recorded:
        call = call_of(recorded, "mm")
        right = Reference(call, recorded).right[0]
        monkeypatch.setattr(execution, "execute_doubled", execute)
        with_memory, without = (Reference(call, recorded).right[0] for _ in range(2))
    assert right is not None and with_memory is not None and without is not None
    assert asked == ["aten::mm", "aten::mm"]
    assert torch.equal(right, with_memory) and torch.equal(right, without)

"""A call in parts: what the parts give, put together, is what the whole gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from torchferry.accuracy.judge import pieces
from torchferry.accuracy.judge.divisions import divisions_of
from torchferry.accuracy.judge.execution import TensorSource, doubled_inputs, execute_doubled, read_inputs
from torchferry.accuracy.judge.pieces import CallPart, Grid, Item, items_of
from torchferry.accuracy.model import Call

from .recorded import call_of, record, seeded

aten = torch.ops.aten


def a(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def trained(function: Callable[..., torch.Tensor], *tensors: torch.Tensor) -> None:
    """Forward and backward."""
    result = function(*(tensor.requires_grad_() for tensor in tensors))
    result.backward(a(*result.shape))


def whole(*shape: int, below: int = 5) -> torch.Tensor:
    return torch.randint(0, below, shape)


# name -> what is called, the operator, and the outputs that have parts
PROGRAMS: dict[str, tuple[Callable[[], Any], str, set[int]]] = {
    "element": (lambda: a(6, 10, 7) + a(10, 1), "add.Tensor", {0}),
    "element in place": (lambda: a(6, 70).mul_(a(1, 70)), "mul_.Tensor", {0}),
    "permuted": (lambda: a(6, 8, 5).permute(2, 0, 1).exp(), "exp", {0}),
    "repeated": (lambda: a(6, 1).expand(6, 50).tanh(), "tanh", {0}),
    "mm": (lambda: a(20, 9) @ a(9, 30), "mm", {0}),
    "addmm": (lambda: torch.addmm(a(30), a(20, 9), a(9, 30)), "addmm", {0}),
    "addmm of a matrix": (lambda: torch.addmm(a(20, 30), a(20, 9), a(9, 30), beta=0.5), "addmm", {0}),
    "bmm": (lambda: torch.bmm(a(6, 10, 4), a(6, 4, 9)), "bmm", {0}),
    "baddbmm": (lambda: torch.baddbmm(a(6, 10, 9), a(6, 10, 4), a(6, 4, 9)), "baddbmm", {0}),
    "convolution": (lambda: functional.conv2d(a(5, 3, 9, 9), a(8, 3, 3, 3), a(8)), "convolution", {0}),
    "groups": (lambda: functional.conv2d(a(5, 4, 9, 9), a(8, 2, 3, 3), groups=2), "convolution", {0}),
    "transposed": (lambda: functional.conv_transpose2d(a(5, 4, 9, 9), a(4, 6, 3, 3)), "convolution", {0}),
    "convolution backward": (
        lambda: trained(lambda *given: functional.conv2d(*given, stride=2), a(5, 3, 9, 9), a(8, 3, 3, 3), a(8)),
        "convolution_backward",
        {0, 1, 2},
    ),
    "transposed backward": (
        lambda: trained(functional.conv_transpose2d, a(5, 4, 5, 5), a(4, 6, 3, 3)),
        "convolution_backward",
        {0, 1},
    ),
    "groups backward": (
        lambda: trained(lambda *given: functional.conv2d(*given, groups=2), a(5, 4, 9, 9), a(8, 2, 3, 3)),
        "convolution_backward",
        {0},
    ),
    "layer norm": (lambda: functional.layer_norm(a(6, 7, 20), (20,), a(20), a(20)), "native_layer_norm", {0, 1, 2}),
    "layer norm backward": (
        lambda: trained(lambda x, w, b: functional.layer_norm(x, (20,), w, b), a(6, 7, 20), a(20), a(20)),
        "native_layer_norm_backward",
        {0, 1, 2},
    ),
    "batch norm": (
        lambda: functional.batch_norm(a(6, 9, 5, 5), a(9), a(9).exp(), a(9), a(9), training=True),
        "native_batch_norm",
        {0, 1, 2, 3, 4},
    ),
    "batch norm backward": (
        lambda: trained(lambda *x: functional.batch_norm(x[0], None, None, *x[1:], training=True), a(6, 9, 5), a(9), a(9)),
        "native_batch_norm_backward",
        {0, 1, 2},
    ),
    "group norm": (lambda: functional.group_norm(a(6, 8, 5, 5), 2, a(8), a(8)), "native_group_norm", {0, 1, 2}),
    "group norm backward": (
        lambda: trained(lambda *x: functional.group_norm(x[0], 2, *x[1:]), a(6, 8, 5, 5), a(8), a(8)),
        "native_group_norm_backward",
        {0},
    ),
    "softmax": (lambda: a(6, 10, 12).softmax(1), "_softmax", {0}),
    "log softmax backward": (lambda: trained(lambda x: x.log_softmax(-1), a(30, 12)), "_log_softmax_backward_data", {0}),
    "sum": (lambda: a(6, 10, 12).sum((0, 2)), "sum.dim_IntList", {0}),
    "mean that keeps": (lambda: a(6, 10, 12).mean(1, keepdim=True), "mean.dim", {0}),
    "maximum": (lambda: a(6, 10, 12).max(1), "max.dim", {0, 1}),
    "norm": (lambda: torch.linalg.vector_norm(a(40, 12), dim=-1), "linalg_vector_norm", {0}),
    "cumsum": (lambda: a(40, 12).cumsum(0), "cumsum", {0}),
    "sort": (lambda: a(40, 12).sort(0), "sort", {0, 1}),
    "topk": (lambda: a(40, 12).topk(3, 1), "topk", {0, 1}),
    "flip": (lambda: a(40, 12).flip(0), "flip", {0}),
    "cat": (lambda: torch.cat([a(5, 20), a(5, 31)], 1), "cat", {0}),
    "gather": (lambda: a(30, 12).gather(1, whole(30, 4)), "gather", {0}),
    "mode": (lambda: whole(6, 10, 12).mode(-1), "mode", {0, 1}),
    "one image": (lambda: functional.avg_pool2d(a(9, 8, 8), 3, stride=1, padding=1), "avg_pool2d", {0}),
    "pooling": (lambda: functional.max_pool2d(a(5, 6, 8, 8), 2), "max_pool2d_with_indices", {0, 1}),
    "pooling backward": (
        lambda: trained(lambda x: functional.max_pool2d(x, 2), a(5, 6, 8, 8)),
        "max_pool2d_with_indices_backward",
        {0},
    ),
    "interpolation backward": (
        lambda: trained(lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"), a(5, 6, 4, 4)),
        "upsample_bilinear2d_backward",
        {0},
    ),
    "padding": (lambda: functional.pad(a(5, 6, 8), (1, 2)), "constant_pad_nd", {0}),
    "embedding": (lambda: functional.embedding(whole(6, 15, below=50), a(50, 8)), "embedding", {0}),
    "embedding backward": (
        lambda: trained(lambda table: functional.embedding(whole(6, 15, below=50), table), a(50, 8)),
        "embedding_dense_backward",
        {0},
    ),
    "likelihood backward": (
        lambda: trained(lambda x: functional.nll_loss(x, whole(40)), a(40, 5)),
        "nll_loss_backward",
        {0},
    ),
    "attention": (
        lambda: aten._scaled_dot_product_flash_attention_for_cpu(a(3, 4, 9, 8), a(3, 4, 9, 8), a(3, 4, 9, 8)),
        "_scaled_dot_product_flash_attention_for_cpu",
        {0, 1},
    ),
    "attention backward": (
        lambda: trained(
            lambda *x: aten._scaled_dot_product_flash_attention_for_cpu(*x)[0], a(3, 4, 9, 8), a(3, 4, 9, 8), a(3, 4, 9, 8)
        ),
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        {0, 1, 2},
    ),
}  # fmt: skip


def assemble(call: Call, source: TensorSource) -> tuple[dict[int, torch.Tensor], int]:
    """The outputs, in double precision, from parts; and how many parts there were."""
    found: dict[int, torch.Tensor] = {}
    count = 0
    for division in divisions_of(call):
        grid = Grid(call, division)
        for ranges in (ranges for block in grid.blocks for ranges in grid.cells(block)):
            part = CallPart(call, source, division, ranges)
            results = execute_doubled(part.call, doubled_inputs(read_inputs(part, part.call)))
            count += 1
            for at in division.outputs:
                result = results[at]
                assert result is not None and tuple(result.shape) == part.call.outputs[at].shape
                target = found.setdefault(at, torch.full(call.outputs[at].shape, 99, dtype=result.dtype))
                target[part.place(at)] = result
    return found, count


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_make_the_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "BLOCK", 160)
    monkeypatch.setattr(pieces, "PIECE", 70)
    monkeypatch.setattr(pieces, "RESULTS", 4)
    program, operator, outputs = PROGRAMS[name]
    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, operator)
        right = execute_doubled(call, doubled_inputs(read_inputs(recorded, call)))
        found, count = assemble(call, recorded)
    assert found.keys() == outputs
    assert count > 3
    for at, result in found.items():
        torch.testing.assert_close(result, right[at], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("program", "operator"),
    [
        (lambda: a(50, 50).sum(), "sum"),  # of all
        (
            lambda: functional.huber_loss(a(50), a(50).requires_grad_()).backward(),
            "huber_loss_backward",
        ),  # a mean
        (lambda: a(50, 3).cross(a(50, 3), dim=1), "linalg_cross"),
        (lambda: a(50, 50).tril(), "tril"),
        (lambda: a(50, 50).roll(3), "roll"),
    ],
    ids=["sum", "mean of a loss", "cross", "tril", "roll"],
)
def test_what_has_no_parts(program: Callable[[], Any], operator: str, tmp_path: Path) -> None:
    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        assert divisions_of(call_of(recorded, operator)) == []


def test_items_of_lists_make_the_whole(tmp_path: Path) -> None:
    with seeded():
        lists = [[a(4, 5), a(7), a(3, 3)] for _ in range(4)]
    steps = [torch.tensor(3.0) for _ in range(3)]

    def program() -> None:
        torch._foreach_add_(lists[0], lists[1], alpha=0.5)
        torch._foreach_mul(lists[0], [1.0, 2.0, 3.0])
        torch._fused_adamw_(
            *lists[:2], lists[2], [each.exp() for each in lists[3]], [], steps, lr=0.1, beta1=0.9, beta2=0.99,
            weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip

    with record(tmp_path / "a.h5", program) as recorded:
        for operator in ("_foreach_add_.List", "_foreach_mul.ScalarList", "_fused_adamw_"):
            call = call_of(recorded, operator)
            right = {
                record.name: result
                for record, result in zip(
                    call.outputs,
                    execute_doubled(call, doubled_inputs(read_inputs(recorded, call))),
                    strict=True,
                )
            }
            assert items_of(call) == 3
            found = []
            for number in range(3):
                item = Item(call, recorded, number, 3)
                found += execute_doubled(item.call, doubled_inputs(read_inputs(item, item.call)))
            assert len(found) == len(right)
            for result in right.values():
                assert result is not None
                assert any(each is not None and torch.equal(each, result) for each in found)

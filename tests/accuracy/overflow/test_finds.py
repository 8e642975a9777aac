"""The first operator that makes what is not finite is found, whatever it is and wherever it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.overflow.checking import check, training
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.overflow.model import End, OverflowKind

ATTENTION = "q = model(torch.randn(2, 4, 4))\nscores = q @ q.transpose(1, 2)\n"

MADE = {
    "product in half precision": (
        training(
            "nn.init.ones_(model.weight)\ny = model(torch.full((3, 64), 3e4).half())\ny.float().mean().backward()",
            "nn.Linear(64, 4, bias=False).half()",
        ),
        (OverflowKind.INFINITE, "aten::mm", "forward"),
    ),
    "logarithm of a negative number": (
        training("y = model(torch.ones(3, 4))\n(y - 9).log().sum().backward()"),
        (OverflowKind.NAN, "aten::log", "forward"),
    ),
    "zero by zero": (
        training("y = model(torch.ones(3, 4))\nz = y - y\n(z / z.norm()).sum().backward()"),
        (OverflowKind.NAN, "aten::div.Tensor", "forward"),
    ),
    "backward pass alone": (
        training("y = model(torch.ones(3, 4))\n(y - y.detach()).sqrt().sum().backward()"),
        (OverflowKind.INFINITE, "aten::div.Tensor", "backward"),
    ),
    "optimizer": (
        training(
            "(model(torch.ones(3, 4)) * 1e30).sum().backward()",
            optimizer="torch.optim.Adam(model.parameters(), foreach=False)",
        ),
        (OverflowKind.INFINITE, "aten::addcmul_", "optimizer"),
    ),
    "optimizer with lists of tensors": (
        training(
            "(model(torch.ones(3, 4)) * 1e30).sum().backward()",
            optimizer="torch.optim.Adam(model.parameters(), foreach=True)",
        ),
        (OverflowKind.INFINITE, "aten::_foreach_addcmul_.Scalar", "optimizer"),
    ),
    "a row that is masked as a whole": (
        training(
            f"{ATTENTION}mask = torch.ones(4, 4).bool()\n"
            "(scores.masked_fill(mask, float('-inf')).softmax(-1) @ q).sum().backward()"
        ),
        (OverflowKind.NAN, "aten::_softmax", "forward"),
    ),
    "batch norm with a variance below 0": (
        training(
            "model[1].running_var.fill_(-1.0)\nmodel.eval()\nmodel(torch.ones(1, 4)).sum().backward()",
            "nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))",
        ),
        (OverflowKind.NAN, "aten::native_batch_norm", "forward"),
    ),
    "number that is NaN": (
        training("weight = float('inf') * 0\nmodel(torch.ones(3, 4) * weight).sum().backward()", steps=2),
        (OverflowKind.NAN, "aten::addmm", "forward"),
    ),
}


@pytest.mark.parametrize("case", MADE)
def test_who_makes_it(case: str, tmp_path: Path) -> None:
    program, expected = MADE[case]
    run = check(program, tmp_path)
    assert (run.first.kind, run.first.call.operator, run.first.call.phase) == expected
    assert run.findings.end is End.FOUND and run.ended.returncode == 1
    assert "trained to the end" not in run.ended.stdout


INNOCENT = {
    "nothing special": training("model(torch.ones(3, 4)).square().mean().backward()"),
    "causal mask that is added": training(
        f"{ATTENTION}mask = torch.triu(torch.full((4, 4), float('-inf')), 1)\n"
        "((scores + mask).softmax(-1) @ q).sum().backward()"
    ),
    "causal mask that is filled in": training(
        f"{ATTENTION}mask = torch.ones(4, 4).triu(1).bool()\n"
        "(scores.masked_fill(mask, float('-inf')).softmax(-1) @ q).sum().backward()"
    ),
    "where": training(
        f"{ATTENTION}kept = torch.where(torch.ones(4, 4).tril().bool(), scores, float('-inf'))\n"
        "(kept.softmax(-1) @ q).sum().backward()"
    ),
    "fused attention": training(
        "q = model(torch.randn(2, 1, 4, 4))\nF.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()"
    ),
    "mask of a transformer": training(
        "x = torch.randn(4, 2, 4)\nmask = nn.Transformer.generate_square_subsequent_mask(4)\n"
        "model(x, x, x, attn_mask=mask)[0].sum().backward()",
        "nn.MultiheadAttention(4, 2)",
    ),
    "logarithm of a table that begins with 0": training(
        "buckets = torch.log(torch.arange(4.0) / 2).to(torch.long)\nmodel(torch.ones(3, 4)).mean().backward()"
    ),
    "lowest number as a mask in half precision": training(
        f"{ATTENTION}lowest = torch.full((4, 4), torch.finfo(torch.half).min).half().triu(1)\n"
        "p = (-100 * scores.detach().abs().half() + lowest).float().softmax(-1)\n(p @ q).sum().backward()"
    ),
    "memory that nobody has written to": training(
        "x = torch.empty(3, 4).fill_(float('nan'))\ntorch.add(torch.ones(3, 4), 1, out=x)\nmodel(x).mean().backward()"
    ),
    "places that are NaN until they are filled": training(
        "x = torch.full((3, 4), float('nan'))\nx[0] = 1.0\nx = x.nan_to_num()\nmodel(x).mean().backward()"
    ),
    "truncated normal numbers": training(
        "x = torch.tensor([-1.0, 0.5, 1.0, 0.0]).erfinv_().clamp_(-2, 2)\nmodel(x[None]).mean().backward()"
    ),
    "batch norm of one element": training(
        "model(torch.ones(1, 4, 1, 2)).sum().backward()",
        "nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4))",
    ),
}


@pytest.mark.parametrize("case", INNOCENT)
def test_no_false_alarm(case: str, tmp_path: Path) -> None:
    run = check(INNOCENT[case], tmp_path)
    assert run.findings.first is None
    assert (run.findings.end, run.findings.steps, run.ended.returncode) == (End.STEPS, 3, 0)
    assert not run.record.exists()


def test_what_seems_intended_is_noted_or_found_if_asked(tmp_path: Path) -> None:
    program = INNOCENT["logarithm of a table that begins with 0"]
    (noted,) = check(program, tmp_path).findings.events
    assert (noted.why, noted.call.operator) == ("table", "aten::log")
    for file in tmp_path.iterdir():
        file.unlink()
    assert check(program, tmp_path, strict=True).first.call.operator == "aten::log"


def test_nan_that_comes_from_outside_is_told_so(tmp_path: Path) -> None:
    # the first step's data is computed before the first module is called
    program = training("x = torch.zeros(3, 4) / torch.zeros(3, 4)\nmodel(x).sum().backward()")
    given = check(program, tmp_path).first
    assert (given.why, given.call.operator) == ("given", "aten::addmm")
    for file in tmp_path.iterdir():
        file.unlink()
    whole = check(program, tmp_path, whole=True).first
    assert (whole.why, whole.call.operator) == ("", "aten::div.Tensor")


def test_where_it_is_and_what_came_before(tmp_path: Path) -> None:
    program = training(
        "y = model(torch.ones(3, 4))\n(y - 9).log().sum().backward()",
        "nn.Sequential(nn.Linear(4, 4), nn.ReLU())",
    )
    first = check(program, tmp_path, last=2).first
    assert first.call.place == "<string>:11" and first.call.step == 1
    assert [seen.operator for seen in first.before] == ["aten::relu", "aten::sub.Tensor"]
    relu = first.before[0]
    assert relu.module == "1" and relu.inputs[0].name == "input/self" and relu.outputs[0].shape == (3, 4)
    statistics = relu.outputs[0].statistics
    assert statistics is not None and statistics.minimum == 0 <= statistics.rms <= statistics.maximum


IN_PLACE = {
    "in place": (
        "z = model(torch.ones(3, 4)) * 0 + 3\nz.mul_(1e30).mul_(1e30).sum().backward()",
        3e30,
        "self",
    ),
    "list": (
        "z = [model(torch.ones(3, 4)).detach() * 0 + 3]\nmodel(torch.ones(3, 4)).sum().backward()\n"
        "torch._foreach_mul_(z, 1e30)\ntorch._foreach_mul_(z, 1e30)",
        3e30,
        "self/self_0",
    ),
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_inputs_are_saved_as_they_were_before_the_call(case: str, tmp_path: Path) -> None:
    body, before, name = IN_PLACE[case]
    run = check(training(body), tmp_path)
    assert run.first.unsaved == () and run.first.record == str(run.record)
    with open_record(run.record) as record:
        (call,) = record.calls
        assert call.operator == run.first.call.operator and call.place == run.first.call.place
        given = next(tensor for tensor in call.inputs if tensor.name == f"input/{name}")
        made = next(tensor for tensor in call.outputs if tensor.name == f"output/{name}")
        assert record.tensor(given).flatten()[0].item() == pytest.approx(before)
        assert record.tensor(made).isinf().all()


def test_values_beyond_half_precision(tmp_path: Path) -> None:
    program = training("y = model(torch.full((3, 4), 300.0)) * 0 + 300\ny.pow(2).mean().backward()")
    assert check(program, tmp_path).findings.first is None
    for file in tmp_path.iterdir():
        file.unlink()
    first = check(program, tmp_path, half=True).first
    assert (first.kind, first.call.operator) == (OverflowKind.HALF, "aten::pow.Tensor_Scalar")


def test_what_half_precision_would_lose(tmp_path: Path) -> None:
    program = training("(model(torch.ones(3, 4)) * 1e-9).sum().backward()")
    underflow = check(program, tmp_path, half=True).findings.underflow
    assert underflow[0].share == 1.0
    assert {each.call.phase for each in underflow} == {"forward", "backward"}


def test_a_program_that_goes_on(tmp_path: Path) -> None:
    program = training("(model(torch.ones(3, 4)) - 9).log().sum().backward()")
    run = check(program, tmp_path, keep_going=True)
    assert run.first.call.operator == "aten::log" and "trained to the end" not in run.ended.stdout
    assert (run.findings.end, run.findings.steps, run.ended.returncode) == (End.STEPS, 3, 0)
    run = check(program.replace("SGD", "Adam"), _fresh(tmp_path), steps=None, keep_going=True)
    assert "trained to the end" in run.ended.stdout and run.findings.end is End.PROGRAM


def _fresh(folder: Path) -> Path:
    fresh = folder / "fresh"
    fresh.mkdir()
    return fresh

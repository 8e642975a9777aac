"""TF705 (opt-in): class labels as int32."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, said_with, vendor

_LOSS = "criterion = torch.nn.CrossEntropyLoss().cuda()\n"


def _step(move: str, loss: str = "criterion(model(x), y)") -> str:
    return f"{_LOSS}y = {move}\nloss = {loss}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y.cuda(gpu, non_blocking=True)", "y.npu(gpu, non_blocking=True).int()"),
        ("y.to(device)", "y.to(device).int()"),
        ("y.to('cuda')", "y.to('npu').int()"),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    changed = expression(_step(before), "ascend", "int32_labels")
    assert changed == _step(after).replace(".cuda()", ".npu()")


@pytest.mark.parametrize(
    "loss",
    [
        "torch.nn.functional.cross_entropy(model(x), y)",
        "torch.nn.functional.nll_loss(model(x), target=y)",
        "torch.nn.CrossEntropyLoss()(model(x), y)",
        "criterion(model(x), y)",
    ],
)
def test_what_a_classification_loss_is_given_is_a_label(loss: str) -> None:
    assert "y.npu().int()" in expression(_step("y.cuda()", loss), "ascend", "int32_labels")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("loss = mse(model(x), y)", id="a regression's target"),
        pytest.param("loss = criterion(model(x), y); z = embedding[y]", id="also a place"),
        pytest.param("loss = criterion(model(x), y); z = f.one_hot(y)", id="also where int64 is a must"),
    ],
)
def test_other_targets_stay(source: str) -> None:
    after = expression(f"{_LOSS}y = y.to(device)\n{source}", "ascend", "int32_labels")
    assert ".int()" not in after


def test_unclear_labels_are_a_todo() -> None:
    assert said_with("target = target.to(device)", "int32_labels") == [("TF705", "todo", "target.to(device)")]


@pytest.mark.parametrize(
    "move", ["y.cuda().int()", "y.to(torch.int32)", "y.to(device, dtype=t)", "y.to(d).long()"]
)
def test_a_cast_of_the_users_counts(move: str) -> None:
    assert expression(_step(move), "ascend", "int32_labels").count("int()") == move.count("int()")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = x.to(device)", id="not labels"),
        pytest.param("target.to", id="not called"),
        pytest.param("self.target.to(device)", id="an attribute"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", "int32_labels") == source


def test_off_unless_asked_for() -> None:
    assert ".int()" not in expression(_step("y.cuda()"))


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    after = expression(_step("y.cuda()"), name, "int32_labels")
    assert f"y = y.{vendor(name).tensor_method}().int()" in after


def test_portable_code_keeps_what_cuda_takes() -> None:
    assert ".int()" not in expression(_step("y.cuda()"), "portable", "int32_labels")
    assert ("TF705", "info", "y.cuda()") in said_with(_step("y.cuda()"), "int32_labels", to="portable")


def test_targets_of_a_regression_are_no_question() -> None:
    assert said_with("loss = F.mse_loss(output, target.to(output.device))", "int32_labels") == []


def test_a_module_with_a_regression_alone_has_no_classes() -> None:
    source = "def step(x, y):\n    return F.mse_loss(x, y)\ntarget = target.cuda()\nstep(model(x), target)"
    assert said_with(source, "int32_labels") == []


def test_labels_that_move_inside_the_call_of_their_loss() -> None:
    before = (
        "loss = F.nll_loss(scores, targets.to(scores.device)), F.kl_div(scores, targets.to(scores.device))"
    )
    after = before.replace("targets.to(scores.device)", "targets.to(scores.device).int()", 1)
    assert expression(before, "ascend", "int32_labels") == after

"""Modules that keep the precision they have: tests, casts of their own, optimizers around optimizers."""

from __future__ import annotations

import pytest

from tests.conversion.amp.amping import left
from tests.conversion.rewriting import target
from torchferry.conversion.file import FileJob, convert_text
from torchferry.conversion.rule import RuleSet
from torchferry.conversion.rules.mixed_precision import RULE
from torchferry.source.decode import decode

_STEP = """
def test_step():
    loss = model(x)
    loss.backward()
    optimizer.step()
    assert loss < 1
"""


@pytest.mark.parametrize(
    ("path", "is_left"),
    [
        ("tests/steps.py", True),
        ("test_steps.py", True),
        ("pkg/steps_test.py", True),
        ("train.py", False),
        ("latest/train.py", False),
    ],
)
def test_tests_compare_numbers(path: str, is_left: bool) -> None:
    job = FileJob(target("ascend"), RuleSet([RULE]))
    conversion = convert_text(decode(f"import torch\n{_STEP}".encode()), path, job)
    assert (conversion.new_text is None) == is_left
    said = [item.message.en for item in conversion.findings if item.kind.value == "info"]
    assert said == (["Test kept in single precision. A test compares numbers."] if is_left else [])


@pytest.mark.parametrize(
    "cast",
    [
        "model.to(torch.float16)",
        "model = model.to(device, dtype=torch.bfloat16)",
        "model = AutoModel.from_pretrained(name, torch_dtype=torch.half)",
        "model.half()",
    ],
)
def test_a_cast_is_a_precision_of_its_own(cast: str) -> None:
    ((kind, _, message),) = left(f"import torch\n{cast}\n{_STEP}")
    assert kind == "info"
    assert message.startswith("Mixed precision already present")


def test_gradients_that_a_function_takes() -> None:
    source = """
        import torch
        def penalty(model, x):
            return torch.autograd.grad(model(x).sum(), x, create_graph=True)[0].norm()
        def total(model, x):
            return model(x).mean() + penalty(model, x)
        def train(model, optimizer):
            loss = total(model, x)
            loss.backward()
            optimizer.step()
        """
    ((kind, place, message),) = left(source)
    assert (kind, place) == ("todo", "total(model, x)")
    assert "divide the gradients by scaler.get_scale()" in message


def test_an_optimizer_around_another_one_does_not_train() -> None:
    source = """
        import torch
        class Lookahead(torch.optim.Optimizer):
            def step(self, closure=None):
                return self.base_optimizer.step(closure)
            def state_dict(self):
                return self.base_optimizer.state_dict()
        """
    assert left(source) == []

"""Optimizers of torch beside the form that was chosen for the device."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchferry.perf.affinity import fused, fused_form, fused_optimizer
from torchferry.vendors.similar import load_similar

CASES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5}),
    ("Adadelta", {}),
    ("Adagrad", {"lr": 0.1}),
    ("Rprop", {}),
]


def _model(target: Any) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).to(target.type)


def _train(target: Any, make: Any, steps: int = 5) -> list[torch.Tensor]:
    model = _model(target)
    optimizer = make(model)
    batches = torch.randn(steps, 4, 5, generator=torch.Generator().manual_seed(1)).to(target.type)
    for batch in batches:
        optimizer.zero_grad()
        (model(batch) ** 2).mean().backward()
        optimizer.step()
    return [param.detach().cpu() for param in model.parameters()]


def check_trains_as_torchs_own(target: Any) -> None:
    for name, settings in CASES:
        plain = _train(
            target, lambda model, n=name, s=settings: getattr(torch.optim, n)(model.parameters(), **s)
        )
        ours = _train(target, lambda model, n=name, s=settings: fused_optimizer(n, model.parameters(), **s))
        for one, other in zip(plain, ours, strict=True):
            torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")


def check_the_vendors_class_is_taken_where_its_table_has_one(target: Any) -> None:
    entries = load_similar(target.vendor.folder) if target.vendor is not None else ()
    own = {entry.cuda.rpartition(".")[2]: entry.use.partition("(")[0] for entry in entries}
    for name in ("SGD", "Adam", "AdamW", "RMSprop"):
        optimizer = fused(name)(_model(target).parameters(), lr=0.1)
        expected = own.get(name, f"torch.optim.{name}(")
        assert fused_form(optimizer).startswith(expected), fused_form(optimizer)
        if name in own:
            assert type(optimizer).__name__ == expected.rpartition(".")[2]
            other = fused_optimizer(name, _model(target).parameters(), lr=0.1, vendor_class=False)
            assert fused_form(other).startswith(f"torch.optim.{name}("), fused_form(other)


def check_what_a_class_can_not_take_goes_to_another(target: Any) -> None:
    model = _model(target)
    named = [{"params": model.named_parameters()}]
    for params in (model.named_parameters(), named, [{"params": model.parameters(), "maximize": True}]):
        optimizer = fused(torch.optim.SGD)(params, lr=0.1)
        assert fused_form(optimizer).startswith("torch.optim.SGD(")
    half = _model(target).bfloat16()
    assert fused_form(fused("SGD")(half.parameters(), lr=0.1)).startswith("torch.optim.SGD(")


def check_groups_and_schedulers(target: Any) -> None:
    def make(kind: Any, model: nn.Module) -> Any:
        first, _, last = model.children()
        groups = [
            {"params": first.parameters()},
            {"params": last.parameters(), "lr": 0.01, "weight_decay": 0.1},
        ]
        return kind(groups, lr=0.1, momentum=0.9)

    plain = _train(target, lambda model: make(torch.optim.SGD, model))
    ours = _train(target, lambda model: make(fused(torch.optim.SGD), model))
    for one, other in zip(plain, ours, strict=True):
        torch.testing.assert_close(one, other)
    optimizer = fused("SGD")(_model(target).parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


def check_wrong_arguments_raise_as_torchs_own(target: Any) -> None:
    for params, settings in ((None, {"lr": -1}), (None, {"no_such": 1}), ([], {"lr": 1})):
        said = []
        for make in (torch.optim.SGD, fused(torch.optim.SGD)):
            try:
                make(_model(target).parameters() if params is None else params, **settings)
            except (TypeError, ValueError) as error:
                said.append(type(error))
        assert len(said) == 2 and said[0] is said[1], (settings, said)


def check_who_says_how_has_chosen(target: Any) -> None:
    optimizer = fused("SGD")(_model(target).parameters(), lr=0.1, foreach=False)
    assert type(optimizer) is torch.optim.SGD and fused_form(optimizer) == "torch.optim.SGD"


def check_gradients_that_were_dropped_are_not_trained_with(target: Any) -> None:
    """A class that keeps all gradients in one tensor would go on with the old ones."""
    model = _model(target)
    optimizer = fused("SGD")(model.parameters(), lr=0.1)
    entries = load_similar(target.vendor.folder) if target.vendor is not None else ()
    keeps = any(entry.keeps_gradients and entry.use.startswith(fused_form(optimizer)) for entry in entries)
    refused = False
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        model(torch.ones(2, 5).to(target.type)).sum().backward()
        try:
            optimizer.step()
        except RuntimeError as error:
            refused = "optimizer.zero_grad()" in str(error)
    assert refused == keeps

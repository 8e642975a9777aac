"""Clipping, accumulation, several optimizers: when gradients are unscaled, and the scaler updated once."""

from __future__ import annotations

import textwrap

import pytest

from tests.conversion.amp.amping import amped, check


def step_of(source: str) -> str:
    """The converted body of a training loop, given as the body of `for x in data:`."""
    head = "import torch\ndef train(model, optimizer, opt_g, opt_d):\n    for x in data:\n"
    text = amped(head + textwrap.indent(textwrap.dedent(source).strip("\n"), " " * 8) + "\n")
    body = text.split("    for x in data:\n")[1]
    return textwrap.dedent(body)


@pytest.mark.parametrize(
    "clip",
    [
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "norm = nn.utils.clip_grad_value_(model.parameters(), 0.5)",
        "if max_norm:\n    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)",
        "for p in model.parameters():\n    p.grad.data.clamp_(-1, 1)",
        "total = sum(p.grad.norm() for p in model.parameters())",
        "clip_gradient(optimizer, 0.1)",
    ],
)
def test_gradients_are_unscaled_before_they_are_looked_at(clip: str) -> None:
    body = step_of(f"loss = model(x)\nloss.backward()\n{clip}\noptimizer.step()")
    assert body.endswith(
        f"scaler.scale(loss).backward()\nscaler.unscale_(optimizer)\n{clip}\nscaler.step(optimizer)\nscaler.update()\n"
    )


def test_gradients_are_unscaled_once() -> None:
    body = step_of(
        """
        loss = model(x)
        loss.backward()
        clip_grad_value_(model.parameters(), 1.0)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        """
    )
    assert body.count("unscale_") == 1


def test_accumulation() -> None:
    body = step_of(
        """
        loss = model(x) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        """
    )
    assert body == textwrap.dedent(
        """\
        with torch.cuda.amp.autocast():
            loss = model(x) / 4
        scaler.scale(loss).backward()
        if (i + 1) % 4 == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        """
    )


def test_accumulation_in_a_loop_of_its_own() -> None:
    body = step_of(
        """
        for micro in range(8):
            logits, loss = model(*batch())
            loss = loss / 8
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        """
    )
    assert body == textwrap.dedent(
        """\
        for micro in range(8):
            with torch.cuda.amp.autocast():
                logits, loss = model(*batch())
                loss = loss / 8
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        """
    )


def test_two_optimizers_one_update() -> None:
    body = step_of(
        """
        fake = model.generate(x)
        loss_d = model.judge(x) - model.judge(fake.detach())
        loss_d.backward()
        opt_d.step()
        loss_g = model.judge(fake)
        loss_g.backward()
        opt_g.step()
        """
    )
    assert body == textwrap.dedent(
        """\
        with torch.cuda.amp.autocast():
            fake = model.generate(x)
            loss_d = model.judge(x) - model.judge(fake.detach())
        scaler.scale(loss_d).backward()
        scaler.step(opt_d)
        with torch.cuda.amp.autocast():
            loss_g = model.judge(fake)
        scaler.scale(loss_g).backward()
        scaler.step(opt_g)
        scaler.update()
        """
    )


def test_a_generator_that_steps_less_often() -> None:
    body = step_of(
        """
        loss_d = model(x)
        loss_d.backward()
        opt_d.step()
        if i % n_critic == 0:
            loss_g = model(x)
            loss_g.backward()
            opt_g.step()
        """
    )
    assert body.endswith("    scaler.step(opt_g)\nscaler.update()\n")
    assert body.count("update()") == 1


def test_a_critic_in_a_loop_of_its_own_is_updated_there() -> None:
    body = step_of(
        """
        for _ in range(n_critic):
            loss_d = model(x)
            loss_d.backward()
            opt_d.step()
        loss_g = model(x)
        loss_g.backward()
        opt_g.step()
        """
    )
    assert "    scaler.step(opt_d)\n    scaler.update()\n" in body
    assert body.endswith("scaler.step(opt_g)\nscaler.update()\n")


def test_one_optimizer_steps_twice_in_an_iteration() -> None:
    body = step_of(
        "loss = model(x)\nloss.backward()\nopt_d.step()\nloss = model(-x)\nloss.backward()\nopt_d.step()"
    )
    assert body.count("scaler.step(opt_d)\nscaler.update()\n") == 2


def test_branches_have_their_own_updates() -> None:
    body = step_of(
        """
        loss = model(x)
        loss.backward()
        if warm:
            opt_d.step()
        else:
            opt_g.step()
        """
    )
    assert (
        "    scaler.step(opt_d)\n    scaler.update()\nelse:\n    scaler.step(opt_g)\n    scaler.update()\n"
        in body
    )


def test_all_optimizers_in_a_loop() -> None:
    check(
        """
        import torch
        def train(model, optimizers):
            for x in data:
                loss = model(x)
                loss.backward()
                for optimizer in optimizers:
                    optimizer.step()
        """,
        """
        import torch

        scaler = torch.cuda.amp.GradScaler()
        def train(model, optimizers):
            for x in data:
                with torch.cuda.amp.autocast():
                    loss = model(x)
                scaler.scale(loss).backward()
                for optimizer in optimizers:
                    scaler.step(optimizer)
                scaler.update()
        """,
    )


def test_a_check_for_nan_and_a_schedule_stay() -> None:
    body = step_of(
        """
        loss = model(x)
        if not torch.isfinite(loss):
            continue
        loss.backward()
        optimizer.step()
        lr_scheduler.step()
        """
    )
    assert body == textwrap.dedent(
        """\
        with torch.cuda.amp.autocast():
            loss = model(x)
        if not torch.isfinite(loss):
            continue
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        lr_scheduler.step()
        """
    )


def test_the_scaler_is_made_where_every_branch_reaches_it() -> None:
    text = amped(
        """
        import torch
        def main():
            if adam:
                optimizer = torch.optim.Adam(model.parameters())
                loss = model(x)
                loss.backward()
                optimizer.step()
            else:
                optimizer = torch.optim.SGD(model.parameters(), 0.1)
                loss = model(x)
                loss.backward()
                optimizer.step()
        """
    )
    assert text.startswith("\nimport torch\n\nscaler = torch.cuda.amp.GradScaler()\ndef main():\n")
    assert text.count("GradScaler") == 1

"""The recorder sees every loss and step of a program, and the program does not notice it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .recorded import plain, record

HEAD = """\
    import random, sys
    import torch
    from torch import nn
    import torch.nn.functional as F
"""

TRAINING = (
    HEAD
    + """
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    try:
        for step in range(6):
            loss = F.cross_entropy(model(torch.randn(4, 6)), torch.randint(0, 3, (4,)))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            print(step, loss.item())
    except Exception:
        print("swallowed")
    finally:
        print("cleaned up")
"""
)


def test_a_plain_program_is_recorded_and_not_disturbed(tmp_path: Path) -> None:
    ended = record(tmp_path, TRAINING, alone=True)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout == plain(tmp_path, TRAINING)
    printed = [float(line.split()[1]) for line in ended.stdout.splitlines()[:6]]
    assert [step.losses[0].value for step in ended.steps] == printed
    assert [loss.place for step in ended.steps for loss in step.losses] == ["train.py:12"] * 6
    first = ended.steps[0]
    assert [each.name for each in first.parameters] == [
        "0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias",
    ]  # fmt: skip
    assert [each.name for each in first.gradients] == [each.name for each in first.parameters]
    assert [each.name for each in first.buffers] == [
        "1.running_mean", "1.running_var", "1.num_batches_tracked",
    ]  # fmt: skip
    assert first.parameters != ended.steps[1].parameters
    assert first.optimizer_type == "SGD"


def test_after_the_steps_the_program_ends_and_cleans_up(tmp_path: Path) -> None:
    ended = record(tmp_path, TRAINING, alone=True, steps=2)
    assert (ended.code, ended.stderr) == (0, "")
    assert len(ended.steps) == 2
    lines = ended.stdout.splitlines()
    assert len(lines) == 2
    assert lines[1] == "cleaned up"


def test_every_generator_is_seeded(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
    import numpy
    print(torch.rand(1).item(), random.random(), numpy.random.rand())
    """
    )
    printed = [
        record(tmp_path / str(number), program, seed=seed).stdout for number, seed in enumerate([3, 3, 4])
    ]
    assert printed[0] == printed[1] != printed[2]


SEVERAL = (
    HEAD
    + """
    class Twice(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    class Own(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})
        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.sub_(p.grad, alpha=group["lr"])

    generator, critic = nn.Linear(3, 3), nn.Linear(3, 1)
    loose = torch.zeros(3, requires_grad=True)
    of_critic = Twice(critic.parameters(), lr=0.1)
    torch.optim.SGD(critic.parameters(), lr=0.1)  # from now on the base class's step has hooks, too
    of_generator = Own([*generator.parameters(), loose])
    for step in range(2):
        for _ in range(2):  # accumulation
            critic(generator(torch.randn(4, 3)).detach()).mean().backward()
        of_critic.step()
        critic(generator(torch.randn(4, 3)) + loose).mean().backward()
        of_generator.step()
        of_critic.zero_grad(); of_generator.zero_grad()

    table = nn.Embedding(5, 3, sparse=True)
    sparse = torch.optim.SparseAdam(table.parameters())
    table(torch.tensor([1, 1, 2])).sum().backward()
    sparse.step()

    straight = nn.Linear(4, 1)
    inputs = torch.randn(16, 4)
    lbfgs = torch.optim.LBFGS(straight.parameters(), max_iter=3)
    def closure():
        lbfgs.zero_grad()
        loss = (straight(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        return loss
    lbfgs.step(closure)

    torch.autograd.backward([straight.weight.sum(), straight.bias * 2], [None, torch.ones(1)])
    unused = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    lazy = nn.LazyLinear(2)  # its parameters have no shape yet
    torch.optim.SGD([unused, *lazy.parameters()], lr=0.1).step()
"""
)


def test_accumulation_two_optimizers_sparse_gradients_closures(tmp_path: Path) -> None:
    ended = record(tmp_path, SEVERAL)
    assert (ended.code, ended.stderr) == (0, "")
    gan, rest = ended.steps[:4], ended.steps[4:]
    assert [(step.optimizer, step.optimizer_type, len(step.losses)) for step in gan] == [
        (0, "Twice", 2), (1, "Own", 1), (0, "Twice", 2), (1, "Own", 1),
    ]  # fmt: skip
    assert [each.name for each in gan[0].parameters] == ["weight", "bias"]
    assert [each.name for each in gan[1].parameters] == ["weight", "bias", "optimizer1.group0.2"]
    sparse, lbfgs, last = rest
    assert sparse.gradients[0].facts is not None
    assert sparse.gradients[0].facts.norm == pytest.approx((3 * 2**2 + 3) ** 0.5)
    assert len(lbfgs.losses) == 3
    assert lbfgs.gradients[0].facts is not None  # there was none when the step began
    assert [loss.facts.shape for loss in last.losses] == [(), (1,)]
    assert last.gradients[0].facts is None
    assert last.parameters[0].facts is not None
    assert last.parameters[0].facts.dtype == "complex64"
    assert [each.facts for each in last.parameters[1:]] == [None, None]


def test_the_steps_are_those_of_the_optimizer_that_steps_most(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
    often, seldom = (torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1) for _ in range(2))
    while True:
        often.step(); often.step(); seldom.step()
    """
    )
    ended = record(tmp_path, program, steps=4)
    assert ended.code == 0
    assert [step.optimizer for step in ended.steps] == [0, 0, 1, 0, 0]


def test_a_step_that_a_scaler_leaves_out(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = (torch.amp if hasattr(torch.amp, "GradScaler") else torch.cpu.amp).GradScaler("cpu")
    for scale in (1.0, float("inf"), 1.0):
        loss = model(torch.ones(3, 2)).mean() * scale
        print(loss.item())
        scaler.scale(loss).backward()
        scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
    """
    )
    ended = record(tmp_path, program)
    assert (ended.code, ended.stderr) == (0, "")
    assert [(len(step.losses), step.skipped) for step in ended.steps] == [(1, 0), (2, 1)]
    first = ended.steps[0].losses[0]
    assert first.value == float(ended.stdout.split()[0])  # what the program knows as its loss
    assert first.facts.norm == abs(first.value)  # and what is compared
    assert first.scale == 65536.0


def test_checkpointing_calls_backward_inside_backward(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
    from torch.utils.checkpoint import checkpoint
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    checkpoint(model, torch.ones(1, 2, requires_grad=True), use_reentrant=True).sum().backward()
    optimizer.step()
    """
    )
    assert len(record(tmp_path, program).steps[0].losses) == 1


SPAWNED = (
    HEAD
    + """
    import os
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def train(rank, folder):
        dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        while True:
            model(torch.full((2, 3), rank + 1.0)).sum().backward()
            optimizer.step()

    if __name__ == "__main__":
        mp.spawn(train, (os.getcwd(),), nprocs=2)
        print("all ended well")
"""
)


def test_spawned_processes_each_leave_a_recording(tmp_path: Path) -> None:
    ended = record(tmp_path, SPAWNED, alone=True, steps=3)
    assert (ended.code, ended.stdout) == (0, "all ended well\n"), ended.stderr
    assert [(each.identity.rank, each.identity.role) for each in ended.recordings] == [
        (0, "SpawnProcess-1"), (1, "SpawnProcess-2"),
    ]  # fmt: skip
    first, second = (list(each.steps()) for each in ended.recordings)
    assert len(first) == len(second) == 3
    assert [each.name for each in first[0].parameters] == ["weight", "bias"]
    assert first[0].losses != second[0].losses
    assert first[2].parameters == second[2].parameters


def test_a_process_that_is_killed_leaves_its_steps(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
    import os, signal
    optimizer = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    optimizer.step(); optimizer.step()
    os.kill(os.getpid(), signal.SIGKILL)
    """
    )
    ended = record(tmp_path, program, alone=True)
    assert ended.code == -9
    assert len(ended.steps) == 2


def test_weights_of_one_run_in_another(tmp_path: Path) -> None:
    program = (
        HEAD
        + """
    torch.manual_seed({seed})
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    model[1].running_mean.normal_()
    optimizer = torch.optim.SGD(model[:2].parameters(), lr=0.1)
    optimizer.add_param_group({{"params": model[2].parameters()}})
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    """
    )
    weights = tmp_path / "weights"
    weights.mkdir()
    kept = record(tmp_path / "1", program.format(seed=1), weights="save", weights_folder=str(weights))
    own = record(tmp_path / "2", program.format(seed=2))
    given = record(tmp_path / "3", program.format(seed=2), weights="load", weights_folder=str(weights))
    assert own.steps[0].parameters != kept.steps[0].parameters
    assert given.steps[0] == kept.steps[0]


def test_nothing_is_recorded_unless_it_was_asked_for() -> None:
    assert not hasattr(torch.autograd.backward, "__wrapped__")

"""With shared randomness a program draws on host and device what it draws on the CPU alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.sim.checking import Target

Program = Callable[[str], Iterator[Tensor]]


def assert_same(target: Target, program: Program) -> None:
    """Every number of a program that is seeded once; the host draws another one after each."""

    def run(device: str) -> list[Tensor]:
        torch.manual_seed(0)
        found = []
        for value in program(device):
            found += [value.detach().cpu(), torch.rand(2)]
        return found

    on_cpu, on_device = run("cpu"), run(target.type)
    for step, (expected, found) in enumerate(zip(on_cpu, on_device, strict=True)):
        assert torch.equal(expected, found), f"number {step // 2} differs"


def check_direct_draws(target: Target) -> None:
    def program(device: str) -> Iterator[Tensor]:
        yield torch.randn(5, device=device)
        yield torch.rand_like(torch.ones(33, device=device))
        yield torch.randint(0, 9, (7,), device=device)
        yield torch.randperm(50, device=device)
        yield torch.empty(9, device=device).bernoulli_(0.3)
        yield torch.bernoulli(torch.full((9,), 0.5, device=device))
        yield torch.multinomial(torch.tensor([0.1, 0.7, 0.2], device=device), 6, replacement=True)
        yield torch.empty(20, device=device).normal_(1, 2)
        yield torch.empty(3, device=device).normal_()
        yield torch.empty(8, device=device).uniform_(-1, 1)
        yield torch.empty(8, device=device).exponential_()
        yield torch.normal(torch.zeros(4, device=device), torch.ones(4, device=device))
        yield nn.init.trunc_normal_(torch.empty(6, device=device))

    assert_same(target, program)


def check_every_dropout(target: Target) -> None:
    def program(device: str) -> Iterator[Tensor]:
        x = torch.ones(4, 6, device=device)
        yield nn.Dropout(0.4)(x)
        yield functional.dropout(x, 0.1)
        yield functional.dropout(x.clone(), 0.1, inplace=True)
        yield functional.dropout2d(x.view(2, 2, 3, 2), 0.5)
        yield functional.alpha_dropout(x, 0.5, training=True)
        yield functional.feature_alpha_dropout(x.view(2, 2, 3, 2), 0.5, training=True)
        yield functional.rrelu(-x, training=True)
        yield functional.gumbel_softmax(x)
        query = torch.randn(2, 2, 5, 4, device=device)
        yield functional.scaled_dot_product_attention(query, query, query, dropout_p=0.3)
        yield functional.scaled_dot_product_attention(query, query, query, dropout_p=0.3, is_causal=True)

    assert_same(target, program)


def _trained(device: str, model: nn.Module, shape: tuple[int, ...]) -> Iterator[Tensor]:
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)
    data = TensorDataset(torch.randn(12, *shape), torch.randn(12, 1))
    for _ in range(2):
        for x, y in DataLoader(data, batch_size=4, shuffle=True):
            found = model(x.to(device))
            found = found[0] if isinstance(found, tuple) else found
            loss = functional.mse_loss(found.flatten(1).mean(1, keepdim=True), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss
    yield from model.parameters()


class _SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0] + self.attention(x, x, x, need_weights=False)[0]


def check_training_with_a_shuffling_loader(target: Target) -> None:
    for make, shape in (
        (lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Dropout(0.5), nn.Linear(9, 1)), (6,)),
        (lambda: nn.LSTM(6, 5, 2, dropout=0.3, batch_first=True), (4, 6)),
        (lambda: nn.GRU(6, 5, 3, dropout=0.3, bidirectional=True, batch_first=True), (4, 6)),
        (_SelfAttention, (4, 8)),
        (
            lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.2, batch_first=True), 2),
            (4, 8),
        ),
    ):
        assert_same(target, lambda device, make=make, shape=shape: _trained(device, make(), shape))  # type: ignore[misc]


def check_activation_checkpointing(target: Target) -> None:
    def program(device: str) -> Iterator[Tensor]:
        layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(device)
        for reentrant in (True, False):
            x = torch.ones(3, 4, device=device, requires_grad=True)
            y = checkpoint(layer, x, use_reentrant=reentrant)
            yield y
            yield functional.dropout(y, 0.5)
            y.sum().backward()
            assert x.grad is not None
            expected = ((y != 0).float().detach() @ layer[0].weight.detach()) * 2
            torch.testing.assert_close(x.grad, expected)  # the recomputed layer dropped the same elements
            yield x.grad

    assert_same(target, program)


def check_fork_rng_gives_the_state_back(target: Target) -> None:
    def program(device: str) -> Iterator[Tensor]:
        kind = target.type if device == "cpu" else device
        for devices in ([], [0], [0, 1]):
            with torch.random.fork_rng(devices=devices, device_type=kind):
                yield torch.rand(3, device=device)
            yield torch.rand(3, device=device)

    assert_same(target, program)
    torch.manual_seed(4)
    with torch.random.fork_rng(devices=[0], device_type=target.type):
        inside = torch.rand(3, device=target.type)
    assert torch.equal(inside, torch.rand(3, device=target.type))


def check_seeds_and_states_are_those_of_the_cpu(target: Target) -> None:
    module = target.module
    for seed in (module.manual_seed, module.manual_seed_all):
        seed(11)
        assert torch.initial_seed() == module.initial_seed() == 11
        first = torch.rand(4)
        seed(11)
        assert torch.equal(first, torch.rand(4, device=f"{target.type}:1").cpu())
    state = torch.get_rng_state()
    assert all(torch.equal(state, found) for found in module.get_rng_state_all())
    first = torch.rand(4, device=target.type).cpu()
    module.set_rng_state(state)
    assert torch.equal(first, torch.rand(4))
    module.seed()
    assert torch.initial_seed() == module.initial_seed() != 11


def check_a_generator_of_ones_own_stays_apart(target: Target) -> None:
    own = torch.Generator(device=target.type).manual_seed(5)
    torch.manual_seed(6)
    state = torch.get_rng_state()
    drawn = torch.rand(4, device=target.type, generator=own).cpu()
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(drawn, torch.rand(4, generator=torch.Generator().manual_seed(5)))

"""Training on the device gives the CPU's numbers, bit for bit."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from tests.sim.checking import Target

MakeOptimizer = Callable[[Iterable[Tensor]], torch.optim.Optimizer]


def sgd(parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)


def trained(
    device: str, make: Callable[[], nn.Module], x: Tensor, make_optimizer: MakeOptimizer = sgd
) -> list[Tensor]:
    """Three losses, and the parameters afterwards."""
    torch.manual_seed(0)
    model = make().to(device)
    optimizer = make_optimizer(model.parameters())
    torch.manual_seed(1)  # dropout must draw the same numbers whatever the making of the model drew
    losses = []
    for _ in range(3):
        y = model(x.to(device))
        loss = (y[0] if isinstance(y, tuple) else y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [tensor.cpu() for tensor in (*losses, *(p.detach() for p in model.parameters()))]


def assert_same_training(
    target: Target, make: Callable[[], nn.Module], x: Tensor, *rest: MakeOptimizer
) -> None:
    on_cpu = trained("cpu", make, x, *rest)
    on_device = trained(target.type, make, x, *rest)
    for expected, found in zip(on_cpu, on_device, strict=True):
        assert torch.equal(expected, found)


def image_model(*extra: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8), *extra, nn.SiLU(), nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Dropout(0.3), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(36, 4), nn.LayerNorm(4),
    )  # fmt: skip


def check_convolutions_norms_pools_and_dropout(target: Target) -> None:
    assert_same_training(target, lambda: image_model(nn.GroupNorm(2, 8)), torch.randn(4, 3, 20, 20))


def check_dropout_has_further_derivatives(target: Target) -> None:
    def run(device: str) -> Tensor:
        torch.manual_seed(1)
        x = torch.linspace(-1, 1, 12).to(device).requires_grad_()
        (slope,) = torch.autograd.grad(nn.functional.dropout(x, 0.5).pow(3).sum(), x, create_graph=True)
        slope.pow(2).sum().backward()
        assert x.grad is not None
        return x.grad.cpu()

    assert torch.equal(run(target.type), run("cpu"))
    assert run("cpu").abs().sum() > 0


def check_channels_last(target: Target) -> None:
    x = torch.randn(4, 3, 20, 20).to(memory_format=torch.channels_last)
    assert_same_training(target, lambda: image_model(nn.GroupNorm(2, 8)), x)
    assert_same_training(target, lambda: image_model(nn.GroupNorm(4, 8, affine=False)), x)


def check_group_norm_has_further_derivatives_in_every_memory_format(target: Target) -> None:
    def run(device: str, memory_format: torch.memory_format) -> list[Tensor]:
        torch.manual_seed(0)
        layer = nn.GroupNorm(2, 4).to(device, torch.float32)
        x = torch.randn(2, 4, 3, 3).to(memory_format=memory_format).to(device).requires_grad_()
        (first,) = torch.autograd.grad(layer(x).pow(3).sum(), x, create_graph=True)
        first.pow(2).sum().backward()
        gradients = [first, x.grad, layer.weight.grad, layer.bias.grad]
        return [gradient.detach().cpu() for gradient in gradients if gradient is not None]

    for memory_format in (torch.contiguous_format, torch.channels_last):
        (first, *second), (first_found, *second_found) = (run(d, memory_format) for d in ("cpu", target.type))
        assert torch.equal(first, first_found)
        torch.testing.assert_close(
            second_found, second
        )  # channels last, the terms are added in another order


def check_a_transformer(target: Target) -> None:
    def make() -> nn.Module:
        return nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, enable_nested_tensor=False
        )

    assert_same_training(target, make, torch.randn(2, 5, 16))


def check_recurrent_layers(target: Target) -> None:
    x = torch.randn(3, 6, 5)
    assert_same_training(target, lambda: nn.LSTM(5, 7, 2, dropout=0.2, bidirectional=True), x)
    assert_same_training(target, lambda: nn.GRU(5, 7, 2, batch_first=True), x)
    assert_same_training(target, lambda: nn.RNN(5, 7, nonlinearity="relu"), x)
    assert_same_training(target, lambda: nn.LSTMCell(5, 7), x[0])
    assert_same_training(target, lambda: nn.GRUCell(5, 7, bias=False), x[0])


def check_a_packed_sequence(target: Target) -> None:
    def run(device: str) -> list[Tensor]:
        torch.manual_seed(0)
        layer = nn.LSTM(5, 7, batch_first=True).to(device)
        x = torch.randn(3, 6, 5).to(device).requires_grad_()
        packed = nn.utils.rnn.pack_padded_sequence(x, [4, 6, 2], batch_first=True, enforce_sorted=False)
        assert packed.batch_sizes.device.type == "cpu"  # on every device
        assert packed.data.device.type == device
        y, lengths = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)
        y.pow(2).sum().backward()
        assert layer.weight_hh_l0.grad is not None and x.grad is not None
        results = [packed.data, packed.batch_sizes, y, lengths, layer.weight_hh_l0.grad, x.grad]
        return [result.detach().cpu() for result in results]

    for expected, found in zip(run("cpu"), run(target.type), strict=True):
        assert torch.equal(expected, found)


def check_a_recurrent_layer_of_frozen_weights_still_passes_gradients_on(target: Target) -> None:
    layer = nn.LSTM(5, 7).to(target.type).requires_grad_(False)
    x = torch.randn(3, 2, 5, device=target.type, requires_grad=True)
    layer(x)[0].sum().backward()
    assert x.grad is not None and x.grad.abs().sum() > 0
    assert layer.weight_hh_l0.grad is None


def check_optimizers_one_by_one_in_groups_and_fused(target: Target) -> None:
    for make in (
        lambda p: torch.optim.AdamW(p, foreach=False),
        lambda p: torch.optim.AdamW(p, foreach=True),
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.SGD(p, 0.1, fused=True),
        lambda p: torch.optim.Adagrad(p),
        lambda p: torch.optim.RMSprop(p, foreach=True),
    ):
        assert_same_training(target, lambda: nn.Linear(5, 5), torch.randn(2, 5), make)


def check_an_embedding_and_a_cross_entropy(target: Target) -> None:
    def run(device: str) -> Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(11, 6, padding_idx=0), nn.Linear(6, 11)).to(device)
        words = torch.tensor([[1, 2, 0], [4, 1, 9]], device=device)
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten(), label_smoothing=0.1)
        loss.backward()
        gradient: Tensor = model[0].weight.grad  # type: ignore[assignment,union-attr]
        return gradient.cpu()

    assert torch.equal(run("cpu"), run(target.type))


def check_mixed_precision_scales_skips_and_steps(target: Target) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 2)).to(target.type)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler(target.type, init_scale=2.0**4, growth_interval=2)
    for step in range(3):
        with torch.autocast(target.type, dtype=torch.float16):
            y = model(torch.randn(4, 8, device=target.type))
            assert y.dtype is torch.float16
            loss = nn.functional.mse_loss(y, torch.zeros_like(y))
            assert loss.dtype is torch.float32
        before = model[0].weight.detach().clone()
        scaler.scale(loss if step != 1 else loss * float("inf")).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert torch.equal(before, model[0].weight) == (step == 1)  # the step with an overflow is skipped
    assert scaler.get_scale() == 2.0**3


def check_recurrent_layers_under_autocast(target: Target) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        before = nn.Linear(5, 5).to(target.type)
        for layer in (nn.LSTM(5, 7), nn.GRU(5, 7), nn.RNN(5, 7), nn.LSTMCell(5, 7), nn.GRUCell(5, 7)):
            layer.to(target.type)
            x = torch.randn(3, 5) if "Cell" in type(layer).__name__ else torch.randn(4, 3, 5)
            with torch.autocast(target.type, dtype=dtype):
                y = layer(before(x.to(target.type)))  # the first layer hands over half precision
            y = y[0] if isinstance(y, tuple) else y
            assert y.dtype is dtype
            y.float().sum().backward()
            assert all(weight.grad is not None for weight in layer.parameters())
            assert before.weight.grad is not None


def check_activation_checkpointing_draws_the_same_numbers_again(target: Target) -> None:
    layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(target.type)
    gradients = []
    for run in (lambda x: torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False), layer):
        x = torch.ones(3, 4, device=target.type, requires_grad=True)
        torch.manual_seed(0)
        run(x).sum().backward()
        assert x.grad is not None
        gradients.append(x.grad)
    assert torch.equal(*gradients)


def check_functional_transforms_and_compiled_code(target: Target) -> None:
    x = torch.arange(3.0, device=target.type)
    assert torch.func.grad(lambda a: (a**2).sum())(x).tolist() == [0, 2, 4]
    assert torch.vmap(lambda a: a.sum())(torch.ones(3, 2, device=target.type)).tolist() == [2, 2, 2]
    for backend in ("eager", "aot_eager"):
        y = torch.compile(lambda a: a.relu() + 1, backend=backend)(x.clone().requires_grad_())
        y.sum().backward()
        assert y.tolist() == [1, 2, 3]


def check_compiled_attention_and_dropout_are_those_of_eager_code(target: Target) -> None:
    def layer(a: torch.Tensor) -> torch.Tensor:
        attended = torch.nn.functional.scaled_dot_product_attention(a, a, a, is_causal=True)
        return torch.nn.functional.dropout(attended, 0.5)

    x = torch.randn(2, 2, 5, 8, device=target.type, requires_grad=True)
    results = []
    for function in (layer, *(torch.compile(layer, backend=backend) for backend in ("eager", "aot_eager"))):
        torch.manual_seed(1)
        target.module.manual_seed(1)
        results.append(function(x))
    assert results[0].abs().sum() > 0
    assert all(torch.equal(result, results[0]) for result in results)


def check_a_traced_model_trains_and_is_saved(target: Target) -> None:
    torch.manual_seed(0)
    model = image_model().to(target.type)
    x = torch.randn(2, 3, 20, 20, device=target.type)
    traced = torch.jit.trace(model.eval(), x)
    assert torch.equal(traced(x), model(x))
    traced(x)[:, 0].sum().backward()
    assert model[0].weight.grad is not None and model[0].weight.grad.abs().sum() > 0
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file, map_location="cpu")(x.cpu()), model(x).cpu())


def check_backward_runs_in_the_thread_that_calls_it(target: Target) -> None:
    ran: list[bool] = []

    def train() -> None:
        x = torch.ones(2, device=target.type, requires_grad=True)
        caller = threading.get_ident()
        x.register_hook(lambda _: ran.append(threading.get_ident() == caller))
        (x * 2).sum().backward()
        torch.autograd.grad((x * 2).sum(), x)

    train()
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert ran == [True] * 4


def check_torch_compile_captures_the_graph_and_runs_it_eagerly(target: Target) -> None:
    model, expected = nn.Linear(3, 2), nn.Linear(3, 2)
    expected.load_state_dict(model.state_dict())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compiled = torch.compile(model.to(target.type), mode="reduce-overhead")

    @torch.compile(fullgraph=True)
    def loss(y: Tensor) -> Tensor:
        return (y - torch.ones(2, device=y.device)).pow(2).mean()

    there = loss(compiled(torch.ones(4, 3, device=target.type)))
    there.backward()
    here = (expected(torch.ones(4, 3)) - torch.ones(2)).pow(2).mean()
    here.backward()
    assert there.item() == here.item()
    assert torch.equal(model.weight.grad.cpu(), expected.weight.grad)
    assert [str(one.message) for one in said if target.type in str(one.message)]
    torch._dynamo.reset()

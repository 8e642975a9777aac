"""Trains programs as people write them on the vendor's plugin and on the CPU, and prints how far they differ as JSON.

Run by test_programs.py in a process with the plugin: one process for all, starting it costs seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch_npu
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 3
Loss = Callable[[nn.Module], Tensor]
Program = Callable[[str], tuple[nn.Module, Loss]]
MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
Run = Callable[[str], Iterator[Tensor]]


class RmsNorm(nn.Module):
    """Divides by the root of the mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """In single precision, as it is written in models."""
        single = x.float()
        normal = single * torch.rsqrt(single.pow(2).mean(-1, keepdim=True) + 1e-6)
        return normal.type_as(x) * self.weight


class Attention(nn.Module):
    """Causal attention whose places turn the features."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same sizes as x."""
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        angles = torch.outer(
            torch.arange(x.size(1), device=x.device).float(),
            10000.0 ** -torch.linspace(0, 1, query.size(-1) // 2, device=x.device),
        )
        query, key = turned(query, angles), turned(key, angles)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(attended.transpose(1, 2).flatten(2))


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """Each pair of features by its angle."""
    first, second = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)


class Block(nn.Module):
    """Attention and a gated layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = RmsNorm(width)
        self.attention = Attention(width, 4)
        self.between = RmsNorm(width)
        self.gate = nn.Linear(width, 2 * width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The same sizes as x."""
        x = x + self.attention(self.before(x))
        normal = self.between(x)
        return x + self.down(functional.silu(self.gate(normal)) * self.up(normal))


class Gpt(nn.Module):
    """A language model."""

    def __init__(self, words: int = 64, width: int = 32, *, checkpointed: bool = False) -> None:
        super().__init__()
        self.checkpointed = checkpointed
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        """The logits of the next words."""
        state = self.words(words)
        for block in self.blocks:
            state = checkpoint(block, state, use_reentrant=False) if self.checkpointed else block(state)
        return self.head(self.norm(state))


def next_words(device: str) -> Loss:
    """How well a model says the next words."""
    words = torch.randint(0, 64, (2, 17)).to(device)

    def loss(model: nn.Module) -> Tensor:
        logits = model(words[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1).float(), words[:, 1:].flatten())

    return loss


def gpt(device: str) -> tuple[nn.Module, Loss]:
    """Rotary places, RMS norms, gates, causal attention."""
    return Gpt().to(device), next_words(device)


def checkpointed_gpt(device: str) -> tuple[nn.Module, Loss]:
    """Activations are computed again in the backward pass."""
    return Gpt(checkpointed=True).to(device), next_words(device)


def compiled_gpt(device: str) -> tuple[nn.Module, Loss]:
    """The graph that torch.compile takes, without a compiler behind it."""
    model = Gpt().to(device)
    compiled = torch.compile(model, backend="eager")
    loss = next_words(device)
    return model, lambda _: loss(compiled)


class Bert(nn.Module):
    """An encoder with masked words, as torch's own layers make it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(64, 32)
        self.places = nn.Parameter(torch.randn(16, 32) * 0.02)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 64)

    def forward(self, words: Tensor, padding: Tensor) -> Tensor:
        """The logits of each word."""
        state = self.encoder(self.words(words) + self.places, src_key_padding_mask=padding)
        return self.head(self.norm(state))


def bert(device: str) -> tuple[nn.Module, Loss]:
    """Padding is masked, and some words are to be found."""
    words = torch.randint(0, 64, (3, 16))
    padding = torch.arange(16) >= torch.tensor([[16], [12], [9]])
    wanted = words.masked_fill(torch.rand(3, 16) < 0.7, -100).to(device)
    words, padding = words.to(device), padding.to(device)

    def loss(model: nn.Module) -> Tensor:
        return functional.cross_entropy(model(words, padding).flatten(0, 1), wanted.flatten())

    return Bert().to(device), loss


class Residual(nn.Module):
    """Two convolutions that know the time."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inner), nn.SiLU(), nn.Conv2d(inner, outer, 3, padding=1))
        self.time = nn.Linear(16, outer)
        self.second = nn.Sequential(nn.GroupNorm(4, outer), nn.SiLU(), nn.Conv2d(outer, outer, 3, padding=1))
        self.straight = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """With `outer` channels."""
        inner = self.first(x) + self.time(time)[:, :, None, None]
        return self.straight(x) + self.second(inner)


class Unet(nn.Module):
    """Says the noise of an image at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Conv2d(3, 8, 3, padding=1)
        self.down = Residual(8, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm = nn.GroupNorm(4, 16)
        self.up = Residual(24, 8)
        self.end = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, noisy: Tensor, times: Tensor) -> Tensor:
        """The same sizes as the image."""
        angles = times[:, None].float() * torch.exp(-torch.arange(8, device=times.device).float())
        time = torch.cat((angles.sin(), angles.cos()), -1)
        start = self.start(noisy)
        small = self.down(functional.avg_pool2d(start, 2), time)
        flat = self.norm(small).flatten(2).transpose(1, 2)
        attended = self.attention(flat, flat, flat, need_weights=False)[0]
        small = small + attended.transpose(1, 2).unflatten(2, small.shape[2:])
        large = functional.interpolate(small, size=noisy.shape[2:], mode="nearest")
        return self.end(functional.silu(self.up(torch.cat((large, start), 1), time)))


def diffusion(device: str) -> tuple[nn.Module, Loss]:
    """Noise of two images is found."""
    clean, noise = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16)
    times = torch.tensor([3, 40])
    kept = torch.tensor([0.9, 0.3])[:, None, None, None]
    noisy = (kept.sqrt() * clean + (1 - kept).sqrt() * noise).to(device)
    noise, times = noise.to(device), times.to(device)
    return Unet().to(device), lambda model: functional.mse_loss(model(noisy, times), noise)


class Detector(nn.Module):
    """Two levels of a pyramid, one head over both."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.1))
        self.second = nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.1)
        )
        self.lateral = nn.ModuleList([nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1)])
        self.scores = nn.Conv2d(8, 2, 3, padding=1)
        self.boxes = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of two classes and distances to the sides, at all places of both levels."""
        large = self.first(images)
        small = self.second(large)
        top = self.lateral[1](small)
        bottom = self.lateral[0](large) + functional.interpolate(top, size=large.shape[2:], mode="nearest")
        levels = [bottom, top]
        scores = torch.cat([self.scores(level).flatten(2) for level in levels], 2)
        boxes = torch.cat([self.boxes(level).exp().flatten(2) for level in levels], 2)
        return scores.transpose(1, 2), boxes.transpose(1, 2)


def anchors(device: str) -> Tensor:
    """The centers of all places, in pixels."""
    levels = []
    for stride, size in ((2, 12), (4, 6)):
        steps = (torch.arange(size, device=device) + 0.5) * stride
        levels.append(torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1).flatten(0, 1))
    return torch.cat(levels)


def detector(device: str) -> tuple[nn.Module, Loss]:
    """Focal loss of the scores, overlap of the boxes."""
    images = torch.randn(2, 3, 24, 24).to(device)
    real = torch.tensor([[2.0, 3.0, 12.0, 15.0], [6.0, 1.0, 20.0, 9.0]]).to(device)
    centers = anchors(device)

    def loss(model: nn.Module) -> Tensor:
        scores, sides = model(images)
        inside = ((centers > real[:, None, :2]) & (centers < real[:, None, 2:])).all(-1)
        wanted = functional.one_hot(inside.long(), 2).float()
        chance = functional.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
        focal = ((1 - (-chance).exp()) ** 2 * chance).mean()
        found = torch.cat((centers - sides[..., :2], centers + sides[..., 2:]), -1)
        corners = torch.minimum(found[..., 2:], real[:, None, 2:]) - torch.maximum(
            found[..., :2], real[:, None, :2]
        )
        shared = corners.clamp(min=0).prod(-1)
        areas = (found[..., 2:] - found[..., :2]).prod(-1) + (real[:, 2:] - real[:, :2]).prod(-1)[:, None]
        overlap = shared / (areas - shared)
        return focal + (1 - overlap[inside]).mean()

    return Detector().to(device), loss


class LowRank(nn.Module):
    """A layer that stays, and a small one beside it that learns."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, 4, bias=False)
        self.up = nn.Linear(4, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """The same sizes as the layer's."""
        return self.layer(x) + self.up(self.down(x)) * 2.0


def lora(device: str) -> tuple[nn.Module, Loss]:
    """Only what is beside the attention's layers learns."""
    model = Gpt()
    model.requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv = LowRank(block.attention.qkv)
        block.attention.out = LowRank(block.attention.out)
        for part in (block.attention.qkv, block.attention.out):
            part.down.requires_grad_(True)
            part.up.requires_grad_(True)
    return model.to(device), next_words(device)


def learning(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that learn."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def with_adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """What language models are trained with."""
    return torch.optim.AdamW(parameters, lr=0.01, weight_decay=0.1)


def with_momentum(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Where gradients differ by their rounding; Adam makes steps of any gradient that is not quite zero."""
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def trained(program: Program, make: MakeOptimizer, device: str) -> Iterator[Tensor]:
    """The loss of each step, then the model."""
    torch.manual_seed(0)
    model, loss = program(device)
    optimizer = make(learning(model))
    for _ in range(STEPS):
        optimizer.zero_grad()
        found = loss(model)
        found.backward()
        nn.utils.clip_grad_norm_(learning(model), 1.0)
        optimizer.step()
        yield found
    yield from model.state_dict().values()


def in_half(device: str) -> Iterator[Tensor]:
    """Autocast to float16, with scaled losses; one that overflows is left out."""
    torch.manual_seed(0)
    model, loss = gpt(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler(device, init_scale=2.0**30, growth_interval=2)
    for step in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device, torch.float16):
            found = loss(model)
        scaler.scale(found * (1e30 if step == 1 else 1.0)).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        yield found
        yield torch.tensor(scaler.get_scale())
    yield from model.parameters()


def in_bfloat16(device: str) -> Iterator[Tensor]:
    """Autocast to bfloat16."""
    torch.manual_seed(0)
    model, loss = gpt(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            found = loss(model)
        found.backward()
        optimizer.step()
        yield found
    yield from model.parameters()


def with_optimizer(make: MakeOptimizer, device: str) -> Iterator[Tensor]:
    """A small network after some steps of an optimizer."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(device)
    inputs, wanted = torch.randn(5, 6).to(device), torch.randn(5, 3).to(device)
    optimizer = make(list(model.parameters()))
    for _ in range(STEPS):
        optimizer.zero_grad()
        functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
    yield from model.parameters()


def against(plain: type[torch.optim.Optimizer], fused: type[torch.optim.Optimizer], **options: float) -> Run:
    """An optimizer of torch's on the CPU, the plugin's own on the device."""
    return lambda device: with_optimizer(
        lambda parameters: (plain if device == "cpu" else fused)(parameters, **options), device
    )


def of_torch(kind: type[torch.optim.Optimizer], **options: Any) -> Run:
    """The same optimizer on both."""
    return lambda device: with_optimizer(lambda parameters: kind(parameters, **options), device)


# Each program, and how far it may be from the CPU's.
RUNS: dict[str, tuple[Run, float]] = {
    "GPT": (partial(trained, gpt, with_adam), 0.0),
    "GPT with checkpoints": (partial(trained, checkpointed_gpt, with_adam), 0.0),
    "GPT compiled": (partial(trained, compiled_gpt, with_adam), 0.0),
    "detector": (partial(trained, detector, with_adam), 0.0),
    "BERT": (
        partial(trained, bert, with_momentum),
        1e-5,
    ),  # attention with a mask of numbers, in several operators
    "diffusion": (partial(trained, diffusion, with_momentum), 1e-5),
    "LoRA": (partial(trained, lora, with_momentum), 1e-5),
    "float16": (in_half, 2e-2),
    "bfloat16": (in_bfloat16, 5e-2),
    "NpuFusedSGD": (against(torch.optim.SGD, torch_npu.optim.NpuFusedSGD, lr=0.1, momentum=0.9), 1e-6),
    "NpuFusedAdam": (against(torch.optim.Adam, torch_npu.optim.NpuFusedAdam, lr=0.01), 1e-5),
    "NpuFusedAdamW": (against(torch.optim.AdamW, torch_npu.optim.NpuFusedAdamW, lr=0.01), 1e-5),
    "NpuFusedRMSprop": (against(torch.optim.RMSprop, torch_npu.optim.NpuFusedRMSprop, lr=0.01), 1e-5),
    "NpuFusedAdadelta": (against(torch.optim.Adadelta, torch_npu.optim.NpuFusedAdadelta, lr=0.5), 1e-5),
    "AdamW foreach": (of_torch(torch.optim.AdamW, lr=0.01, foreach=True), 1e-6),
    "AdamW fused": (of_torch(torch.optim.AdamW, lr=0.01, fused=True), 1e-6),
    "Adam foreach": (of_torch(torch.optim.Adam, lr=0.01, foreach=True, amsgrad=True), 1e-6),
    "SGD foreach": (of_torch(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, foreach=True), 1e-6),
    "Adagrad": (of_torch(torch.optim.Adagrad, lr=0.1), 1e-6),
    "RMSprop": (of_torch(torch.optim.RMSprop, lr=0.01, momentum=0.5, centered=True), 1e-6),
    "Adadelta": (of_torch(torch.optim.Adadelta, lr=0.5), 1e-6),
    "NAdam": (of_torch(torch.optim.NAdam, lr=0.01), 1e-6),
    "RAdam": (of_torch(torch.optim.RAdam, lr=0.01), 1e-6),
    "Adamax": (of_torch(torch.optim.Adamax, lr=0.01), 1e-6),
    "ASGD": (of_torch(torch.optim.ASGD, lr=0.01), 1e-6),
    "Rprop": (of_torch(torch.optim.Rprop, lr=0.01), 1e-6),
}


def distance(run: Run) -> float | str:
    """The largest difference between both devices, or what went wrong."""
    try:
        cpu = [tensor.detach().clone() for tensor in run("cpu")]
        torch._dynamo.reset()
        device = [tensor.detach().cpu() for tensor in run("npu")]
        assert len(cpu) == len(device)
        differences = [
            0.0 if torch.equal(one, other) else (one.double() - other.double()).abs().max().item()
            for one, other in zip(cpu, device, strict=True)
        ]
        return max(differences)
    except Exception:
        with contextlib.suppress(Exception):
            torch.npu.synchronize()
        return traceback.format_exc()[-1500:]


def main() -> None:
    """Each program's name, its distance, and the largest that there may be."""
    torch.set_num_threads(1)
    json.dump({name: (distance(run), most) for name, (run, most) in RUNS.items()}, sys.stdout)


if __name__ == "__main__":
    main()

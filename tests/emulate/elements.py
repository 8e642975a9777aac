"""Elements drawn, moved, compared and reduced on the vendor's plugin and on the CPU; prints what differs as JSON.

Run by test_elements.py in a process with the plugin. Each function computes on a device, from the same numbers.
"""

from __future__ import annotations

import ctypes
import json
import traceback
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

Check = Callable[[str], Iterable[Tensor]]


def distributions(device: str) -> list[Tensor]:
    """Tensors of random numbers of every kind, and draws of the CPU in between."""
    spread = torch.arange(1.0, 6.0, device=device)
    return [
        torch.randn(33, 65, device=device),
        torch.rand(5, device=device),
        torch.randn(3),
        torch.randn(20, device=device, dtype=torch.float64),
        torch.randn(20, device=device, dtype=torch.bfloat16),
        torch.randperm(50, device=device),
        torch.randint(3, 70, (9,), device=device, dtype=torch.int32),
        torch.empty(20, device=device, dtype=torch.int8).random_(),
        torch.bernoulli(torch.full((50,), 0.4, device=device)),
        torch.empty(40, device=device).bernoulli_(0.2),
        torch.multinomial(torch.rand(4, 10, device=device), 3),
        torch.multinomial(torch.rand(10, device=device), 30, replacement=True),
        torch.normal(spread, spread),
        torch.normal(spread, 2.0),
        torch.normal(2.0, 3.0, (4, 4), device=device),
        nn.init.trunc_normal_(torch.empty(20, 20, device=device)),
        nn.Linear(5, 5, device=device).weight.detach(),
    ]


def dropouts(device: str) -> list[Tensor]:
    """What dropout keeps, and its gradients, in each dtype, in place and recomputed."""
    found = []
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(13, 23).to(device, dtype).requires_grad_()
        kept = functional.dropout(x, 0.3)
        found += [kept, *torch.autograd.grad(kept.sum(), x)]
    x = torch.randn(7, 9).to(device).requires_grad_()
    twice = checkpoint(lambda given: functional.dropout(given.sin(), 0.4), x, use_reentrant=False)
    return [
        *found,
        twice,
        *torch.autograd.grad(twice.sum(), x),
        functional.dropout(x.detach(), 0.5, inplace=True),
    ]


def generators(device: str) -> list[Tensor]:
    """A generator of the program's own beside the default one, and one that begins again."""
    own = torch.Generator(device).manual_seed(42)
    first = torch.rand(17, device=device, generator=own)
    between = torch.rand(4, device=device)
    more = torch.rand(5, device=device, generator=own)
    own.manual_seed(42)
    return [first, between, more, torch.rand(17, device=device, generator=own)]


def indices(device: str) -> list[Tensor]:
    """Places as tensors, with whole dimensions, masks and nothing at all among them."""
    x = torch.arange(60.0).view(3, 4, 5).to(device)
    rows, nothing = torch.tensor([2, 0], device=device), torch.zeros(0, dtype=torch.int64, device=device)
    written = x.clone()
    written[:, rows] = -1.0
    written[nothing] = 7.0
    written[:, :, rows] += 2
    written[written > 50] = 0.5
    written.index_put_((rows, rows), torch.ones(5, device=device), accumulate=True)
    return [x[:, rows], x[rows, :, rows], x[..., nothing], x[x > 30], x[x[:, 0, 0] > 99], written]


def found_sizes(device: str) -> list[Tensor]:
    """Results whose size the values decide."""
    x = torch.tensor([[3, 1, 3], [0, 1, 0]], device=device)
    repeated = torch.repeat_interleave(x, torch.tensor([2, 0, 1], device=device), dim=1)
    return [
        x.nonzero(),
        torch.zeros(2, 3, device=device).nonzero(),
        x.masked_select(x > 0),
        *torch.unique(x, return_inverse=True, return_counts=True),
        *torch.unique(x, dim=1, return_inverse=True, return_counts=True),
        *torch.unique_consecutive(x.flatten(), return_counts=True),
        repeated,
    ]


def views(device: str) -> list[Tensor]:
    """Results into memory with gaps, of expanded and of empty tensors, and of other dtypes."""
    x = torch.randn(6, 8).to(device)
    gaps = torch.zeros(6, 16, device=device)
    torch.matmul(x, x[:1].t().expand(8, 8), out=gaps[:, ::2])
    torch.add(x[0].expand(6, 8), x, alpha=2, out=gaps[:, 1::2])
    x[:, ::3].mul_(x[0, 0])
    x.t()[1].exp_()
    vector = torch.zeros(16, device=device)
    torch.mv(x, x[0], out=vector[:12:2])
    empty = torch.zeros(0, 3, device=device)
    return [gaps, x, vector, empty.sum(0), torch.cat([empty, empty]), empty + 1]


def promotions(device: str) -> list[Tensor]:
    """Dtypes that meet, numbers and tensors of one element among them."""
    whole, half = torch.arange(-3, 3, device=device), torch.randn(6).half().to(device)
    return [
        whole + 1.5,
        whole / 2,
        whole // -2,
        whole % 4,
        whole * half,
        half + torch.tensor(2.5, device=device),
        torch.where(whole > 0, half, 1.0),
        whole > 0.5,
        whole.bool() & True,
        whole.float().pow(2),
        2 ** whole.abs(),
        torch.maximum(whole, torch.tensor(1, device=device)),
        torch.ge(torch.tensor(1, device=device), whole),
    ]


def reductions(device: str) -> list[Tensor]:
    """Over all elements, over negative and over several dimensions."""
    x = torch.randn(3, 4, 5).to(device)
    return [
        x.sum(),
        x.sum((0, -1), keepdim=True),
        x.mean(-2),
        x.amax((0, 2)),
        *x.max(-1),
        *torch.var_mean(x, (0, 1)),
        *torch.aminmax(x, dim=1),
        x.argmax(),
        (x > 0).any(-1),
        (x > 0).all(),
        x.norm(),
        x.norm(1, -1),
        x.logsumexp((0, 1)),
        *x.sort(dim=1, descending=True, stable=True),
        *x.topk(2, 0),
        *x.median(-1),
        x.cumsum(-1),
        x.prod(0),
    ]


CHECKS: list[Check] = [
    distributions,
    dropouts,
    generators,
    indices,
    found_sizes,
    views,
    promotions,
    reductions,
]


def difference(check: Check) -> str:
    """What is different on the device; "" where nothing is."""
    try:
        found = [[one.detach().cpu() for one in check(device)] for device in seeded("cpu", "npu")]
    except Exception:
        return traceback.format_exc()
    wrong = [
        f"result {i}: {ours} instead of {wanted}"
        for i, (wanted, ours) in enumerate(zip(*found, strict=True))
        if ours.dtype != wanted.dtype or not torch.equal(ours, wanted)
    ]
    return "\n".join(wrong)


def seeded(*devices: str) -> Iterable[str]:
    """Devices, each with the random numbers from the start."""
    for device in devices:
        torch.manual_seed(7)
        yield device


def own_numbers() -> str:
    """What is wrong with the numbers that the device draws by itself."""
    ctypes.CDLL("libopapi.so").torchferry_share_randomness(0)
    device = torch.get_device_module("npu")
    device.manual_seed(3)
    state = device.get_rng_state()
    first, second = torch.rand(1000, device="npu"), torch.rand(1000, device="npu")
    kept = functional.dropout(torch.ones(1000, device="npu"), 0.3) > 0
    device.set_rng_state(state)
    again = torch.rand(1000, device="npu")
    other = torch.randn(1000, device="npu").std().item()
    facts = {
        "two draws differ": not torch.equal(first, second),
        "a state comes back": torch.equal(first, again),
        "the mean": 0.4 < first.mean().item() < 0.6,
        "the deviation": 0.8 < other < 1.2,
        "what dropout keeps": 600 < kept.sum().item() < 800,
    }
    return ", ".join(name for name, holds in facts.items() if not holds)


print(json.dumps({**{check.__name__: difference(check) for check in CHECKS}, "own numbers": own_numbers()}))

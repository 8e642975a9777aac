"""The steps that programs are made of. A step looks at the CPU's tensors to choose what to do, and does it on either."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from .state import Side

FLOATS = (torch.float32, torch.float32, torch.float16, torch.bfloat16)
OTHERS = (torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)
SHAPES = ((), (1,), (3,), (6,), (2, 3), (3, 2), (3, 3), (1, 3), (2, 3, 2), (2, 1, 3), (1, 2, 4, 4), (0, 3))


@dataclass(frozen=True)
class Step:
    """What is done, in words, and how."""

    words: str
    do: Callable[[Side], Any]


Maker = Callable[[random.Random, list[Tensor]], Step]
MAKERS: list[tuple[int, Maker]] = []  # how often, and what


def often(weight: int) -> Callable[[Maker], Maker]:
    """Enter a kind of step."""

    def enter(make: Maker) -> Maker:
        MAKERS.append((weight, make))
        return make

    return enter


def random_step(choose: random.Random, tensors: list[Tensor]) -> Step:
    """A step that fits these tensors, more or less: errors are a part of what is compared."""
    if not tensors:
        return new_tensor(choose, tensors)
    weights = [weight for weight, _ in MAKERS]
    _, make = choose.choices(MAKERS, weights)[0]
    return make(choose, tensors)


def _pick(choose: random.Random, tensors: list[Tensor], floats: bool = False) -> int:
    fitting = [i for i, tensor in enumerate(tensors) if not floats or tensor.is_floating_point()]
    return choose.choice(fitting or range(len(tensors)))


@often(6)
def new_tensor(choose: random.Random, tensors: list[Tensor]) -> Step:
    """Small numbers, drawn on the CPU."""
    dtype = choose.choice(FLOATS if choose.random() < 0.7 else OTHERS)
    shape = choose.choice(SHAPES)
    seed = choose.randrange(1000)
    wants_grad = (dtype.is_floating_point or dtype.is_complex) and choose.random() < 0.4

    def do(side: Side) -> Tensor:
        numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2
        made = (
            numbers > 0 if dtype is torch.bool else numbers.abs() if dtype is torch.uint8 else numbers
        ).to(dtype)
        return made.to(side.device).requires_grad_(wants_grad)

    return Step(f"new {dtype} {shape} seed {seed} requires_grad={wants_grad}", do)


def enter(weight: int, arguments: int, table: Mapping[str, Callable[..., Any]], floats: bool = False) -> None:
    """Enter functions of so many tensors."""

    @often(weight)
    def make(choose: random.Random, tensors: list[Tensor]) -> Step:
        name = choose.choice(list(table))
        chosen = [_pick(choose, tensors, floats) for _ in range(arguments)]
        return Step(f"{name} {chosen}", lambda side: table[name](*(side.tensors[i] for i in chosen)))


def _seeded(draw: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    def drawn(x: Tensor) -> Any:
        torch.manual_seed(5)
        return draw(x)

    return drawn


enter(8, 1, {
    "t": lambda x: x.t(), "transpose": lambda x: x.transpose(0, -1), "flip dims": lambda x: x.permute(*reversed(range(x.dim()))),
    "view -1": lambda x: x.view(-1), "reshape -1": lambda x: x.reshape(-1), "reshape 3": lambda x: x.reshape(3, -1),
    "slice": lambda x: x[1:], "step": lambda x: x[::2], "select": lambda x: x[0], "last column": lambda x: x[..., -1],
    "ellipsis None": lambda x: x[..., None], "expand": lambda x: x.expand(2, *x.shape), "squeeze": lambda x: x.squeeze(),
    "narrow": lambda x: x.narrow(0, 0, 1), "diagonal": lambda x: x.diagonal(), "unfold": lambda x: x.unfold(0, 2, 1),
    "chunk": lambda x: x.chunk(2), "split": lambda x: x.split(1), "unbind": lambda x: x.unbind(), "detach": lambda x: x.detach(),
    "as_strided": lambda x: x.as_strided((2,), (1,)), "conj": lambda x: x.conj(), "real": lambda x: x.real, "imag": lambda x: x.imag,
    "view_as_real": torch.view_as_real, "neg view": lambda x: x.conj().imag, "view dtype": lambda x: x.view(torch.int16),
    "data": lambda x: x.data, "alias": lambda x: x.view_as(x), "movedim": lambda x: x.movedim(0, -1), "T": lambda x: x.mT,
})  # fmt: skip
enter(7, 1, {
    "exp": torch.exp, "relu": torch.relu, "sigmoid": torch.sigmoid, "abs": torch.abs, "neg": torch.neg, "sqrt": torch.sqrt,
    "tanh": torch.tanh, "round": torch.round, "gelu": functional.gelu, "silu": functional.silu, "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: functional.log_softmax(x, 0), "cumsum": lambda x: x.cumsum(0), "sort": lambda x: x.sort(), "clone": torch.clone,
    "topk": lambda x: x.topk(2), "flip": lambda x: x.flip(0), "roll": lambda x: x.clone().roll(1), "tril": torch.tril, "isnan": torch.isnan,
    "contiguous": lambda x: x.contiguous(), "channels last": lambda x: x.contiguous(memory_format=torch.channels_last), "sgn": torch.sgn,
    "logical_not": torch.logical_not, "bitwise_not": torch.bitwise_not, "clamp": lambda x: x.clamp(-1, 1), "pow": lambda x: x**2,
    "float": lambda x: x.float(), "half": lambda x: x.half(), "long": lambda x: x.long(), "bool": lambda x: x.bool(), "angle": torch.angle,
    "complex": lambda x: x.to(torch.complex64), "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]), "erf": torch.erf,
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True), "avg_pool2d": lambda x: functional.avg_pool2d(x, 2),
    "max_pool2d": lambda x: functional.max_pool2d(x, 2), "interpolate": lambda x: functional.interpolate(x, scale_factor=2.0),
    "pad": lambda x: functional.pad(x, (1, 1)), "group_norm": lambda x: functional.group_norm(x, 1), "glu": lambda x: functional.glu(x, 0),
    "zeros_like": torch.zeros_like, "ones_like": torch.ones_like, "one_hot": lambda x: functional.one_hot(x.long().abs()), "unique": torch.unique,
    "nonzero": torch.nonzero, "repeat": lambda x: x.repeat(2, *[1] * x.dim()), "where": lambda x: torch.where(x > 0, x, 0), "leaky": functional.leaky_relu,
})  # fmt: skip
enter(4, 1, {
    "sum": torch.sum, "mean": torch.mean, "sum 0": lambda x: x.sum(0), "mean -1": lambda x: x.mean(-1, keepdim=True), "max": torch.max,
    "max 0": lambda x: x.max(0), "argmax": torch.argmax, "amax": lambda x: x.amax(0), "norm": torch.norm, "prod": torch.prod, "var": torch.var,
    "any": torch.any, "logsumexp": lambda x: x.logsumexp(0), "std_mean": torch.std_mean, "median": torch.median, "count": torch.count_nonzero,
    "sum dtype": lambda x: x.sum(dtype=torch.float32), "vector_norm": torch.linalg.vector_norm, "item": lambda x: torch.tensor(x.sum().item(), device=x.device),
})  # fmt: skip
enter(8, 2, {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "eq": torch.eq, "gt": torch.gt,
    "mm": torch.mm, "matmul": torch.matmul, "bmm": torch.bmm, "dot": torch.dot, "mv": torch.mv, "linear": functional.linear, "outer": torch.outer,
    "cat": lambda x, y: torch.cat([x, y]), "stack": lambda x, y: torch.stack([x, y]), "mse": functional.mse_loss, "atan2": torch.atan2,
    "l1": functional.l1_loss, "smooth": functional.smooth_l1_loss, "lerp": lambda x, y: torch.lerp(x, y, 0.3), "conv1d": functional.conv1d,
    "conv2d": functional.conv2d, "where": lambda x, y: torch.where(x > 0, x, y), "remainder": torch.remainder, "pow": torch.pow, "gather": lambda x, y: x.gather(0, y),
    "index_select": lambda x, y: x.index_select(0, y.flatten()), "index": lambda x, y: x[y], "masked_select": lambda x, y: x.masked_select(y > 0),
    "embedding": lambda x, y: functional.embedding(x, y), "cross_entropy": functional.cross_entropy, "bce": functional.binary_cross_entropy_with_logits,
    "cdist": torch.cdist, "kron": torch.kron, "einsum": lambda x, y: torch.einsum("ij,jk->ik", x, y), "prelu": functional.prelu,
    "masked_scatter": lambda x, y: x.masked_scatter(x > 0, y), "take_along": lambda x, y: torch.take_along_dim(x, y.long() % 2, 0), "promote": torch.result_type,
    "attention": lambda x, y: functional.scaled_dot_product_attention(x, y, y),
})  # fmt: skip
enter(8, 1, {
    "add_ 1": lambda x: x.add_(1), "mul_ .5": lambda x: x.mul_(0.5), "zero_": lambda x: x.zero_(), "fill_": lambda x: x.fill_(2), "neg_": lambda x: x.neg_(),
    "relu_": lambda x: x.relu_(), "exp_": lambda x: x.exp_(), "clamp_": lambda x: x.clamp_(0, 1), "t_": lambda x: x.t_(), "unsqueeze_": lambda x: x.unsqueeze_(0),
    "assign": lambda x: x.__setitem__(0, 3), "assign slice": lambda x: x.__setitem__(slice(1, None), 7), "assign mask": lambda x: x.__setitem__(x > 0, 1),
    "detach_": lambda x: x.detach_(), "resize_": lambda x: x.resize_(x.numel() // 8), "abs_": lambda x: x.abs_(), "triu_": lambda x: x.triu_(), "sigmoid_": lambda x: x.sigmoid_(),
    "logical_not_": lambda x: x.detach().logical_not_(), "squeeze_": lambda x: x.squeeze_(), "div_": lambda x: x.div_(2), "pow_": lambda x: x.pow_(2), "sqrt_": lambda x: x.sqrt_(),
    "leaky_": lambda x: functional.leaky_relu_(x), "cumsum_": lambda x: x.cumsum_(0), "requires_grad_": lambda x: x.requires_grad_(), "float_power_": lambda x: x.float_power_(2),
    "square_": lambda x: x.square_(), "clip_": lambda x: x.clip_(0, 1), "fill_diagonal_": lambda x: x.fill_diagonal_(1), "data zero_": lambda x: x.data.zero_(), "set_": lambda x: x.detach().set_(),
})  # fmt: skip
enter(8, 2, {
    "add_": lambda x, y: x.add_(y), "sub_": lambda x, y: x.sub_(y, alpha=2), "mul_": lambda x, y: x.mul_(y), "copy_": lambda x, y: x.copy_(y), "div_": lambda x, y: x.div_(y),
    "index_put": lambda x, y: x.index_put_((torch.zeros(1, dtype=torch.long, device=x.device),), y), "index_add_": lambda x, y: x.index_add_(0, torch.zeros(1, dtype=torch.long, device=x.device), y),
    "scatter": lambda x, y: x.scatter(0, torch.zeros_like(x, dtype=torch.long), y), "scatter_add_": lambda x, y: x.scatter_add_(0, torch.zeros_like(x, dtype=torch.long), y), "lerp_": lambda x, y: x.lerp_(y, 0.5),
    "assign": lambda x, y: x.__setitem__(0, y), "assign slice": lambda x, y: x.__setitem__(slice(1, None), y), "masked_fill_": lambda x, y: x.masked_fill_(y > 0, 2), "addcmul_": lambda x, y: x.addcmul_(y, y),
    "addmm_": lambda x, y: x.addmm_(y, y), "baddbmm": lambda x, y: torch.baddbmm(x, y, y), "addmv": lambda x, y: torch.addmv(x, y, x), "atan2_": lambda x, y: x.atan2_(y), "where out": lambda x, y: torch.where(x > 0, y, x),
    "out add": lambda x, y: torch.add(x, 1, out=y), "out mul": lambda x, y: torch.mul(x, y, out=y), "out mm": lambda x, y: torch.mm(x, x, out=y), "out sum": lambda x, y: torch.sum(x, 0, out=y), "out exp": lambda x, y: torch.exp(x, out=y),
    "out cat": lambda x, y: torch.cat([x, x], out=y), "out max": lambda x, y: torch.amax(x, 0, out=y), "out cumsum": lambda x, y: torch.cumsum(x, 0, out=y),
    "swap data": lambda x, y: setattr(x, "data", y.detach().clone()), "overlap": lambda x, y: torch.cat([x[:1], x[1:]], out=x), "maximum_": lambda x, y: torch.maximum(x, y, out=x),
    "no_grad add_": torch.no_grad()(lambda x, y: x.add_(y)), "bitwise_and_": lambda x, y: x.bitwise_and_(y), "grad": lambda x, y: setattr(x, "grad", y.detach()), "eq_": lambda x, y: x.eq_(y),
})  # fmt: skip
# Not matmul with out=: PyTorch resizes it with an operator on all devices but the CPU, which counts as a write.
enter(4, 2, {
    "foreach add": lambda x, y: torch._foreach_add([x, y], 1), "foreach mul": lambda x, y: torch._foreach_mul([x, y], [y, x]), "foreach add_": torch.no_grad()(lambda x, y: torch._foreach_add_([x, y], 1)),
    "foreach mul_": torch.no_grad()(lambda x, y: torch._foreach_mul_([x], [y])), "foreach lerp_": torch.no_grad()(lambda x, y: torch._foreach_lerp_([x], [y], 0.5)), "foreach sqrt": lambda x, y: torch._foreach_sqrt([x, y]),
    "foreach addcmul_": torch.no_grad()(lambda x, y: torch._foreach_addcmul_([x], [y], [y])), "foreach norm": lambda x, y: torch._foreach_norm([x, y]), "foreach copy_": torch.no_grad()(lambda x, y: torch._foreach_copy_([x], [y])),
    "foreach zero_": torch.no_grad()(lambda x, y: torch._foreach_zero_([x, y])), "foreach neg_": torch.no_grad()(lambda x, y: torch._foreach_neg_([x])), "foreach clamp": lambda x, y: torch._foreach_clamp_min([x, y], 0),
    "foreach add_ grad": lambda x, y: torch._foreach_add_([x], [y]), "foreach max": lambda x, y: torch._foreach_maximum([x], [y]), "clip": lambda x, y: (nn.utils.clip_grad_norm_([x, y], 0.5, foreach=True), None)[1],
    "unscale": torch.no_grad()(lambda x, y: torch._amp_foreach_non_finite_check_and_unscale_([x], torch.zeros(1, device=x.device), torch.ones(1, device=x.device))),
})  # fmt: skip
DRAWING: dict[str, Callable[[Tensor], Any]] = {
    "rand_like": torch.rand_like, "randn_like": torch.randn_like, "bernoulli_": lambda x: x.detach().bernoulli_(0.5), "normal_": lambda x: x.detach().normal_(), "uniform_": lambda x: x.detach().uniform_(),
    "dropout": lambda x: functional.dropout(x, 0.5), "dropout_": lambda x: functional.dropout(x, 0.3, inplace=True), "bernoulli": lambda x: torch.bernoulli(x.sigmoid()), "multinomial": lambda x: torch.multinomial(x.abs() + 0.1, 2),
    "randperm": lambda x: torch.randperm(5, device=x.device), "randint": lambda x: torch.randint(9, x.shape, device=x.device), "exponential_": lambda x: x.detach().exponential_(), "rrelu": lambda x: functional.rrelu(x, training=True),
    "gumbel": lambda x: functional.gumbel_softmax(x), "poisson": lambda x: torch.poisson(x.abs()), "feature dropout": lambda x: functional.dropout2d(x, 0.5), "alpha": lambda x: functional.alpha_dropout(x, 0.5),
    "generator": lambda x: torch.randn(3, device=x.device, generator=torch.Generator(x.device).manual_seed(2)), "random_": lambda x: x.detach().random_(9), "trunc": lambda x: nn.init.trunc_normal_(x.detach()),
}  # fmt: skip
enter(5, 1, {name: _seeded(draw) for name, draw in DRAWING.items()})
enter(6, 1, {
    "backward": lambda x: x.sum().backward(), "backward twice": lambda x: (x.sum().backward(retain_graph=True), x.sum().backward()), "grad": lambda x: torch.autograd.grad(x.sum(), x),
    "second": lambda x: torch.autograd.grad(torch.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum(), x), "mean backward": lambda x: (x * x).mean().backward(),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(lambda y: (y * y).relu(), x, use_reentrant=False), "hook": lambda x: x.register_hook(lambda g: g * 2) and None, "retain": lambda x: x.retain_grad(),
    "inference": lambda x: torch.inference_mode()(lambda: (x * 2).add_(1))(), "set_grad none": lambda x: setattr(x, "grad", None), "leaf": lambda x: x.detach().clone().requires_grad_(),
}, floats=True)  # fmt: skip
transforms: Any = torch.func
TRANSFORMED: dict[str, Any] = {
    "vmap": transforms.vmap(lambda x: x.exp() + 1), "func grad": transforms.grad(lambda x: (x * x).sum()), "jacrev": transforms.jacrev(lambda x: x.sin()), "jvp": lambda x: transforms.jvp(torch.tanh, (x,), (torch.ones_like(x),)),
    "vjp": lambda x: transforms.vjp(torch.exp, x)[0], "hessian": transforms.hessian(lambda x: (x**3).sum()), "vmap in place": transforms.vmap(lambda x: x.clone().add_(1)), "jacfwd": transforms.jacfwd(lambda x: x * x.sum()),
    "functionalize": transforms.functionalize(lambda x: x.clone().mul_(2)), "vmap sum": transforms.vmap(lambda x: x.sum() * x), "vmap rand": lambda x: _seeded(transforms.vmap(lambda y: y * torch.rand_like(y), randomness="different"))(x),
}  # fmt: skip
enter(4, 1, TRANSFORMED, floats=True)


def _layer(layer: nn.Module, x: Tensor) -> list[Tensor]:
    """A layer with made-up weights, and its gradients."""
    layer.to(x.device)
    for number, weight in enumerate(layer.parameters()):
        weight.data = (torch.arange(weight.numel()).view(weight.shape) % 5 * 0.1 + number * 0.01).to(
            x.device, x.dtype
        )
    result = layer(x)
    result = result[0] if isinstance(result, tuple) else result
    result.float().sum().backward()
    return [result, *(weight.grad for weight in layer.parameters() if weight.grad is not None)]


enter(3, 1, {
    "Linear": lambda x: _layer(nn.Linear(x.shape[-1], 2), x), "Conv2d": lambda x: _layer(nn.Conv2d(2, 3, 3, padding=1), x), "ConvTranspose2d": lambda x: _layer(nn.ConvTranspose2d(2, 2, 2), x),
    "BatchNorm": lambda x: _layer(nn.BatchNorm2d(2), x), "LSTM": lambda x: _layer(nn.LSTM(x.shape[-1], 2), x), "GRU": lambda x: _layer(nn.GRU(x.shape[-1], 2), x), "LayerNorm": lambda x: _layer(nn.LayerNorm(x.shape[-1]), x),
    "MultiheadAttention": lambda x: _layer(_SelfAttention(x.shape[-1]), x), "GroupNorm": lambda x: _layer(nn.GroupNorm(1, 2), x), "channels last": lambda x: _layer(nn.Conv2d(2, 2, 3), x.contiguous(memory_format=torch.channels_last)),
}, floats=True)  # fmt: skip


class _SelfAttention(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(size, 1, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.attention(x, x, x)[0]
        return result


def _trained(make: Callable[[list[Tensor]], torch.optim.Optimizer], x: Tensor) -> Tensor:
    """Two steps of an optimizer on a copy."""
    weight = x.detach().clone().requires_grad_()
    optimizer = make([weight])
    for _ in range(2):
        optimizer.zero_grad()
        (weight * weight).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return weight


enter(3, 1, {
    "SGD": lambda x: _trained(lambda w: torch.optim.SGD(w, 0.1, momentum=0.9, foreach=True), x), "Adam": lambda x: _trained(lambda w: torch.optim.Adam(w, 0.1, foreach=True), x),
    "AdamW": lambda x: _trained(lambda w: torch.optim.AdamW(w, 0.1, foreach=False), x), "fused": lambda x: _trained(lambda w: torch.optim.Adam(w, 0.1, fused=True), x),
    "RMSprop": lambda x: _trained(lambda w: torch.optim.RMSprop(w, 0.1, foreach=True), x), "Adagrad": lambda x: _trained(lambda w: torch.optim.Adagrad(w, 0.1, foreach=True), x),
}, floats=True)  # fmt: skip


@often(3)
def autocast(choose: random.Random, tensors: list[Tensor]) -> Step:
    """A product under autocast, with CUDA's lists of operators on both sides."""
    x, y = _pick(choose, tensors, floats=True), _pick(choose, tensors, floats=True)
    dtype = choose.choice((torch.float16, torch.bfloat16))

    def do(side: Side) -> list[Tensor]:
        with torch.autocast(side.device, dtype=dtype):
            product = side.tensors[x] @ side.tensors[y]
            return [product, product.exp(), product.softmax(-1), (product + side.tensors[x]).sum()]

    return Step(f"autocast {dtype} {[x, y]}", do)


@often(2)
def cast(choose: random.Random, tensors: list[Tensor]) -> Step:
    """To another dtype, by a copy or in a result."""
    x, dtype = _pick(choose, tensors), choose.choice((*FLOATS, *OTHERS))
    return Step(f"to {dtype} {x}", lambda side: side.tensors[x].to(dtype))

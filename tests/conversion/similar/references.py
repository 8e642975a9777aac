"""What flash-attn, xformers and apex compute, in plain torch: they can't be installed where there is no CUDA."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from torchferry.sim.shims.optim.apex_style import FusedAdam, FusedSGD


def _attend(q: Tensor, k: Tensor, v: Tensor, scale: float | None, hidden: Tensor | None) -> Tensor:
    """Attention of (batch, length, heads, width) in single precision; a row that sees nothing gives zeros."""
    shared = q.size(2) // k.size(2)
    k, v = (tensor.float().repeat_interleave(shared, 2) for tensor in (k, v))
    scores = torch.einsum("bqhd,bkhd->bhqk", q.float(), k) * (q.size(-1) ** -0.5 if scale is None else scale)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    weights = torch.nan_to_num(scores.softmax(-1)) if hidden is not None else scores.softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v).to(q.dtype)


def _later(rows: int, columns: int, shift: int) -> Tensor:
    return torch.arange(columns) > torch.arange(rows).unsqueeze(1) + shift


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    deterministic: bool = False,
) -> Tensor:
    """The last query sees all keys."""
    assert dropout_p == 0
    rows, columns = q.size(1), k.size(1)
    return _attend(q, k, v, softmax_scale, _later(rows, columns, columns - rows) if causal else None)


def flash_attn_qkvpacked_func(qkv: Tensor, *rest: Any, **named: Any) -> Tensor:
    return flash_attn_func(*qkv.unbind(2), *rest, **named)


def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, *rest: Any, **named: Any) -> Tensor:
    return flash_attn_func(q, *kv.unbind(2), *rest, **named)


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    starts_q: Tensor,
    starts_k: Tensor,
    _q: int,
    _k: int,
    *rest: Any,
    **named: Any,
) -> Tensor:
    lengths_q, lengths_k = starts_q.diff().tolist(), starts_k.diff().tolist()
    parts = zip(q.split(lengths_q), k.split(lengths_k), v.split(lengths_k), strict=True)
    return torch.cat([flash_attn_func(*(x.unsqueeze(0) for x in part), *rest, **named)[0] for part in parts])


def apply_rotary_emb(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Halves of the first columns turned; cosine and sine of each position and pair."""
    width, length = cos.size(-1), x.size(1)
    c, s = cos[:length].float().unsqueeze(1), sin[:length].float().unsqueeze(1)
    one, two, rest = x[..., :width].float(), x[..., width : 2 * width].float(), x[..., 2 * width :]
    return torch.cat(((one * c - two * s).to(x), (two * c + one * s).to(x), rest), -1)


class LowerTriangularMask:
    """The first query sees the first key."""


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: LowerTriangularMask | None = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,
) -> Tensor:
    assert p == 0
    heads = [x.reshape(*x.shape[:2], -1, x.size(-1)) for x in (query, key, value)]
    hidden = _later(query.size(1), key.size(1), 0) if attn_bias is not None else None
    return _attend(*heads, scale, hidden).reshape(*query.shape[:-1], -1)


class SoftmaxCrossEntropyLoss:
    @staticmethod
    def apply(
        logits: Tensor,
        labels: Tensor,
        smoothing: float = 0.0,
        padding_idx: int = 0,
        half_to_float: bool = False,
    ) -> Tensor:
        wide = logits.float()
        chosen = wide.gather(1, labels.unsqueeze(1)).squeeze(1)
        losses = wide.logsumexp(1) - (1 - smoothing) * chosen - smoothing * wide.mean(1)
        losses = losses.masked_fill(labels == padding_idx, 0)
        return losses if half_to_float else losses.to(logits.dtype)


class FusedRMSNorm(nn.Module):
    def __init__(self, normalized_shape: int, eps: float = 1e-5, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(normalized_shape))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        return (wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()).to(x) * self.weight


class FusedLayerNorm(nn.Module):
    def __init__(self, normalized_shape: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(normalized_shape))
        self.bias = nn.Parameter(torch.zeros(normalized_shape))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
        return ((wide - mean) / (variance + self.eps).sqrt()).to(x) * self.weight + self.bias


class FusedDense(nn.Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        product = x @ self.weight.t()
        return product if self.bias is None else product + self.bias


class FusedAdagrad(torch.optim.Optimizer):
    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        set_grad_none: bool = True,
    ) -> None:
        super().__init__(params, {"lr": lr, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad + group["weight_decay"] * param
                total = self.state[param].setdefault("sum", torch.zeros_like(param)).add_(grad.square())
                param.sub_(group["lr"] * grad / (total.sqrt() + group["eps"]))


class DistributedDataParallel(nn.Module):
    """With one process, the module itself."""

    def __init__(self, module: nn.Module, **_: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, *arguments: Any) -> Any:
        return self.module(*arguments)


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0) -> Tensor:
    grads = [parameter.grad for parameter in parameters]
    total = torch.stack([grad.norm(norm_type) for grad in grads]).norm(norm_type)
    for grad in grads:
        grad.mul_(torch.clamp(max_norm / (total + 1e-6), max=1.0))
    return total


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that no better one overlaps by more, best first."""
    order = scores.argsort(descending=True, stable=True).tolist()
    kept: list[int] = []
    for index in order:
        if all(_overlap(boxes[index], boxes[other]) <= iou_threshold for other in kept):
            kept.append(index)
    return torch.tensor(kept, dtype=torch.int64, device=boxes.device)


def _overlap(one: Tensor, other: Tensor) -> float:
    (a, b, c, d), (e, f, g, h) = one.tolist(), other.tolist()
    common = max(min(c, g) - max(a, e), 0) * max(min(d, h) - max(b, f), 0)
    return common / ((c - a) * (d - b) + (g - e) * (h - f) - common)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """nms among the boxes of each class."""
    kept = torch.zeros_like(scores, dtype=torch.bool)
    for number in idxs.unique():
        own = torch.where(idxs == number)[0]
        kept[own[nms(boxes[own], scores[own], iou_threshold)]] = True
    chosen = torch.where(kept)[0]
    return chosen[scores[chosen].argsort(descending=True, stable=True)]


_FLASH = (flash_attn_func, flash_attn_qkvpacked_func, flash_attn_kvpacked_func, flash_attn_varlen_func)
_MODULES: dict[str, tuple[Any, ...]] = {
    "flash_attn": _FLASH,
    "flash_attn.flash_attn_interface": _FLASH,
    "flash_attn.layers.rotary": (apply_rotary_emb,),
    "xformers.ops": (memory_efficient_attention, LowerTriangularMask),
    "apex.contrib.clip_grad": (clip_grad_norm_,),
    "apex.contrib.xentropy": (SoftmaxCrossEntropyLoss,),
    "apex.contrib.layer_norm": (),
    "apex.fused_dense": (FusedDense,),
    "apex.normalization": (FusedLayerNorm, FusedRMSNorm),
    "apex.optimizers": (FusedAdagrad, FusedAdam, FusedSGD),
    "apex.parallel": (DistributedDataParallel,),
}


@contextmanager
def installed(*, for_cuda: bool) -> Iterator[None]:
    """With the libraries importable, those for CUDA only where asked for; as before again afterwards."""
    packages = {"torchvision", *(name.partition(".")[0] for name in _MODULES if for_cuda)}
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in packages}
    try:
        _add("torchvision.ops", {"nms": nms, "batched_nms": batched_nms})
        if for_cuda:
            _add_libraries()
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
            del sys.modules[name]
        sys.modules.update(hidden)


def _add_libraries() -> None:
    for name, members in _MODULES.items():
        _add(name, {member.__name__: member for member in members})
    _add("xformers.ops", {"unbind": lambda x, dim: tuple(x.select(dim, i) for i in range(x.size(dim)))})
    _add("apex.contrib.layer_norm", {"FastLayerNorm": FusedLayerNorm})
    _add("apex.normalization", {"MixedFusedLayerNorm": FusedLayerNorm})
    _add("apex.parallel", {"convert_syncbn_model": lambda module: module})


def _add(name: str, members: dict[str, Any]) -> None:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        module = sys.modules.setdefault(path, types.ModuleType(path))
        module.__path__ = []  # type: ignore[attr-defined]  # a package
        if end > 1:
            setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], module)
    for key, value in members.items():
        setattr(sys.modules[name], key, value)

"""Calls with equivalents, each as a small program: what it calls, with which arguments, in which dtypes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torchferry.conversion.similar.signature import choose
from torchferry.vendors.similar import Similar

Make = Callable[[], Any]  # of an argument that is no tensor to differentiate by
Shape = tuple[int, ...]

WIDE, HALF = ("float32",), ("float32", "float16", "bfloat16")

_EXPRESSION = """
import torch
{load}

def program({names}):
    return {call}
"""
_LAYER = """
import torch
{load}

def program({names}):
    layer = {call}
    layer = layer.to(x)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.linspace(0.5, 1.5, parameter.numel()).view_as(parameter))
    return layer({names})
"""
_TRAINING = """
import torch
{load}

def program(model, batches):
    optimizer = {call}
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]
"""
_CLIPPING = """
import torch
{load}

def program(x, y):
    leaves = [tensor.detach().requires_grad_() for tensor in (x, y)]
    (leaves[0].square().sum() + leaves[1].pow(3).sum()).backward()
    total = {call}
    return [total, leaves[0].grad, leaves[1].grad]
"""
_WRAPPING = """
import torch
{load}

def program(model, batches):
    wrapped = {call}
    for batch in batches:
        wrapped(batch).square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]
"""


@dataclass(frozen=True)
class Case:
    """One call of one function."""

    name: str
    call: str  # as it is written after `from module import function`
    inputs: Mapping[str, Shape | Make] = field(default_factory=dict)
    dtypes: tuple[str, ...] = WIDE
    form: str = _EXPRESSION
    load: str = ""  # another import
    only_if: str = ""  # a word of the equivalents that can do this
    on_host: bool = False  # the new code names no vendor, and runs on the CPU

    @property
    def module(self) -> str:
        return self.name.removesuffix(".apply").rpartition(".")[0]

    @property
    def source(self) -> str:
        """The program as it was written for CUDA."""
        last = self.name.removesuffix(".apply").rpartition(".")[2]
        load = "\n".join(filter(None, (f"from {self.module} import {last}", self.load)))
        return self.form.format(load=load, names=", ".join(self.inputs), call=self.call)

    def entry(self, entries: tuple[Similar, ...]) -> Similar | None:
        """The entry that this call is replaced by; None if the vendor's table leaves it alone."""
        own = [entry for entry in entries if self.name in (entry.cuda, *entry.also)]
        if not own:
            return None
        if own[0].is_name_only:
            return own[0]
        call = ast.parse(self.call, mode="eval").body
        while (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and not self.name.endswith(".apply")
        ):
            call = call.func.value
        assert isinstance(call, ast.Call)
        choice = choose(own, call, lambda node: f"{self.module}.{ast.unparse(node)}")
        entry = choice.entry if choice is not None and choice.entry.use else None
        return entry if entry is None or re.search(self.only_if, entry.use) else None


def _attention(name: str, tensors: str, shapes: list[dict[str, Shape | Make]]) -> list[Case]:
    """Every way of saying how to attend, in several shapes, also with more queries than keys and fewer."""
    ways = (
        "",
        ", causal=True",
        ", 0.0, 0.3, causal",
        ", softmax_scale=0.2, causal=causal, deterministic=True",
    )
    found = []
    for number, inputs in enumerate(shapes):
        dtypes = WIDE if number else HALF
        for way in ways:
            for causal in (True, False) if way.endswith("causal") else (True,):
                named = {
                    **inputs,
                    **({"causal": lambda causal=causal: causal} if "causal" in way[7:] else {}),
                }
                if way == ", causal=True":
                    named = dict(inputs)
                found.append(Case(f"flash_attn.{name}", f"{name}({tensors}{way})", named, dtypes))
    return found


_SAME: dict[str, Shape | Make] = {"q": (2, 5, 3, 8), "k": (2, 5, 3, 8), "v": (2, 5, 3, 8)}
_MORE_KEYS: dict[str, Shape | Make] = {"q": (1, 3, 2, 8), "k": (1, 7, 2, 8), "v": (1, 7, 2, 8)}
_LESS_KEYS: dict[str, Shape | Make] = {"q": (1, 6, 2, 4), "k": (1, 4, 2, 4), "v": (1, 4, 2, 4)}
_STARTS = {
    "starts_q": lambda: torch.tensor([0, 3, 5], dtype=torch.int32),
    "starts_k": lambda: torch.tensor([0, 4, 9], dtype=torch.int32),
}

ATTENTION = [
    *_attention("flash_attn_func", "q, k, v", [_SAME, _MORE_KEYS, _LESS_KEYS]),
    *_attention("flash_attn_qkvpacked_func", "qkv", [{"qkv": (2, 5, 3, 2, 8)}]),
    *_attention("flash_attn_kvpacked_func", "q, kv", [{"q": (2, 3, 2, 8), "kv": (2, 5, 2, 2, 8)}]),
    *_attention(
        "flash_attn_varlen_func",
        "q, k, v, starts_q, starts_k, 3, 5",
        [{"q": (5, 2, 8), "k": (9, 2, 8), "v": (9, 2, 8), **_STARTS}],
    ),
    *(
        Case(f"flash_attn.{name}", f"{name}({call})", inputs, HALF, only_if="enable_gqa|npu_fusion_attention")
        for name, call, inputs in (
            (
                "flash_attn_func",
                "q, k, v, causal=True",
                {"q": (2, 5, 4, 8), "k": (2, 5, 2, 8), "v": (2, 5, 2, 8)},
            ),
            ("flash_attn_func", "q, k, v", {"q": (1, 3, 6, 8), "k": (1, 5, 2, 8), "v": (1, 5, 2, 8)}),
            ("flash_attn_kvpacked_func", "q, kv, causal=True", {"q": (2, 3, 4, 8), "kv": (2, 5, 2, 2, 8)}),
        )
    ),
    Case(
        "flash_attn.flash_attn_interface.flash_attn_func",
        "flash_attn_func(q * 2, k, v, causal=True)",
        _SAME,
    ),
    *(
        Case(
            "flash_attn.layers.rotary.apply_rotary_emb",
            "apply_rotary_emb(x, cos, sin)",
            {"x": (2, 5, 3, width), "cos": (7, 4), "sin": (7, 4)},
            HALF,
        )
        for width in (8, 12)
    ),
    *(
        Case(
            "xformers.ops.memory_efficient_attention",
            f"memory_efficient_attention(q, k, v{way})",
            shapes,
            HALF if shapes is _SAME else WIDE,
            load=load,
        )
        for way, load in (
            ("", ""),
            (", scale=0.2, op=None", ""),
            (", attn_bias=LowerTriangularMask()", "from xformers.ops import LowerTriangularMask"),
        )
        for shapes in (
            _SAME,
            _MORE_KEYS,
            {"q": (4, 5, 8), "k": (4, 6, 8), "v": (4, 6, 8)},
            {"q": (2, 5, 2, 3, 8), "k": (2, 5, 2, 3, 8), "v": (2, 5, 2, 3, 8)},
        )
    ),
    Case("xformers.ops.unbind", "sum(unbind(x, dim=1))", {"x": (2, 3, 4)}, HALF),
    Case("xformers.ops.unbind", "sum(unbind(x, 0))", {"x": (2, 3, 4)}),
]


def _labels() -> torch.Tensor:
    return torch.tensor([1, 0, 3, 2])


LAYERS = [
    *(
        Case(
            "apex.contrib.xentropy.SoftmaxCrossEntropyLoss.apply",
            f"SoftmaxCrossEntropyLoss.apply(x, labels{way})",
            {"x": (4, 5), "labels": _labels},
            HALF,
        )
        for way in (
            "",
            ", 0.1, 3",
            ", padding_idx=-1, half_to_float=True",
            ", smoothing=0.2, half_to_float=False",
        )
    ),
    Case("apex.contrib.layer_norm.FastLayerNorm", "FastLayerNorm(6)", {"x": (4, 6)}, HALF, _LAYER),
    Case("apex.contrib.layer_norm.FastLayerNorm", "FastLayerNorm(6, eps=0.1)", {"x": (4, 6)}, WIDE, _LAYER),
    *(
        Case("apex.fused_dense.FusedDense", f"FusedDense({way})", {"x": (4, 6)}, HALF, _LAYER)
        for way in ("6, 3", "6, 3, bias=False", "out_features=3, in_features=6")
    ),
    Case("apex.normalization.FusedLayerNorm", "FusedLayerNorm(6)", {"x": (4, 6)}, HALF, _LAYER),
    Case("apex.normalization.MixedFusedLayerNorm", "MixedFusedLayerNorm(6)", {"x": (4, 6)}, HALF, _LAYER),
    Case("apex.normalization.FusedRMSNorm", "FusedRMSNorm(6)", {"x": (4, 6)}, HALF, _LAYER),
    Case("apex.normalization.FusedRMSNorm", "FusedRMSNorm(6, 0.1)", {"x": (4, 6)}, WIDE, _LAYER),
    *(
        Case(
            "apex.contrib.clip_grad.clip_grad_norm_",
            f"clip_grad_norm_(leaves, {way})",
            {"x": (3, 4), "y": (5,)},
            form=_CLIPPING,
        )
        for way in ("0.5", "max_norm=100.0", "0.5, norm_type=1.0")
    ),
    Case(
        "apex.parallel.DistributedDataParallel",
        "DistributedDataParallel(model, delay_allreduce=True)",
        form=_WRAPPING,
        on_host=True,
    ),
    Case("apex.parallel.convert_syncbn_model", "convert_syncbn_model(model)", form=_WRAPPING, on_host=True),
]

_OPTIMIZERS = {
    "torch.optim.SGD": (
        "",
        "0.1",
        "lr=0.1, momentum=0.9, foreach=True",
        "0.1, 0.9, 0.1, 0.01",
        "0.1, 0.9, nesterov=True, fused=None",
    ),
    "torch.optim.Adam": ("", "0.1", "lr=0.1, betas=(0.8, 0.9), fused=False", "0.1, (0.8, 0.9), 1e-4, 0.1"),
    "torch.optim.AdamW": ("", "0.1", "lr=0.1, weight_decay=0.3, foreach=False", "0.1, (0.8, 0.9), 1e-4, 0.1"),
    "torch.optim.RMSprop": ("", "0.1, 0.9, 1e-4, 0.1, 0.5, True", "lr=0.1, momentum=0.9, foreach=False"),
    "torch.optim.Adadelta": ("", "0.1, 0.8, 1e-4, 0.1", "lr=0.1, foreach=False"),
    "apex.optimizers.FusedAdagrad": ("", "0.1, 1e-4, 0.1", "lr=0.1, set_grad_none=False"),
    "apex.optimizers.FusedAdam": (
        "",
        "0.1, True, (0.8, 0.9), 1e-4",
        "lr=0.1, adam_w_mode=False, weight_decay=0.1",
    ),
    "apex.optimizers.FusedSGD": ("0.1", "lr=0.1, momentum=0.9, set_grad_none=True"),
}
OPTIMIZERS = [
    Case(name, f"{name.rpartition('.')[2]}(model.parameters(){', ' * bool(way)}{way})", form=_TRAINING)
    for name, ways in _OPTIMIZERS.items()
    for way in ways
]

_F = "torch.nn.functional"
_PAIR: dict[str, Shape | Make] = {"x": (4, 5), "y": (4, 5)}


def _with_nan() -> torch.Tensor:
    return torch.tensor([1.0, torch.nan, 3.0, torch.nan, -torch.inf, 2.0])


def _sorted() -> torch.Tensor:
    return torch.tensor([-1.0, 0.0, 0.5, 0.5, 2.0])


def _values() -> torch.Tensor:
    return torch.tensor([[0.5, -3.0, 0.1], [9.0, 2.0, 0.0]])


def _device() -> str:
    return "device of this run"


OPERATORS = [
    *(
        Case(f"{_F}.huber_loss", f"huber_loss(x, y{way})", _PAIR, dtypes)
        for way, dtypes in (
            ("", HALF),
            (", 'none'", HALF),
            (", delta=0.3", WIDE),
            (", reduction='sum', delta=2", WIDE),
        )
    ),
    Case("torch.nn.HuberLoss", "HuberLoss()", _PAIR, HALF, _LAYER),
    Case("torch.nn.HuberLoss", "HuberLoss(reduction='sum')", _PAIR, WIDE, _LAYER),
    *(
        Case(f"torch.{name}", f"{name}({arguments})", inputs)
        for name in ("fmax", "fmin")
        for arguments, inputs in (
            ("x, y", _PAIR),
            ("x.tanh(), y", _PAIR),
            ("x, z", {"x": _with_nan, "z": lambda: _with_nan().flip(0)}),
            ("x, z", {"x": (6,), "z": _with_nan}),
        )
    ),
    Case(
        "torch.heaviside",
        "heaviside(z, w)",
        {"z": lambda: torch.tensor([-1.0, 0.0, 2.0]), "w": lambda: torch.tensor([5.0, 6.0, 7.0])},
    ),
    Case("torch.hypot", "hypot(x, y)", _PAIR, HALF),
    Case("torch.logit", "logit(x.sigmoid())", {"x": (4, 5)}),
    Case("torch.logit", "logit(x, eps=0.1)", {"x": (4, 5)}),
    Case("torch.logit", "logit(x, 1e-3)", {"x": (4, 5)}),
    *(
        Case(f"torch.{name}", f"{name}({order}{way})", {"z": _values, "edges": _sorted})
        for name, order in (("bucketize", "z, edges"), ("searchsorted", "edges, z"))
        for way in ("", ", right=True", ", right=False")
    ),
    Case(
        "torch.searchsorted",
        "searchsorted(edges, z)",
        {"z": _values, "edges": lambda: torch.stack((_sorted(), _sorted() * 2))},
    ),
    *(
        Case("torch.std_mean", f"std_mean(x{way})", {"x": (4, 5)})
        for way in (
            "",
            ", 1",
            ", dim=(0, 1), keepdim=True",
            ", dim=0, unbiased=False",
            ", dim=0, correction=0",
        )
    ),
    Case(f"{_F}.channel_shuffle", "channel_shuffle(x, 3)", {"x": (2, 6, 4, 4)}, HALF),
    Case("torch.channel_shuffle", "channel_shuffle(x + 1, groups=2)", {"x": (2, 6, 4)}),
    Case("torch.complex", "complex(x, y)", _PAIR),
    *(
        Case(
            f"torch.{name}",
            f"{name}(z)",
            {"z": lambda: torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])},
        )
        for name in ("isposinf", "isneginf")
    ),
    *(
        Case("torch.round", f"round(z, decimals={n})", {"z": lambda: torch.tensor([1.2345, -2.7182, 31.4])})
        for n in (2, -1)
    ),
    *(
        Case(f"torch.{name}_indices", f"{name}_indices({way}device=place)", {"place": _device})
        for name in ("triu", "tril")
        for way in ("4, 5, ", "4, 4, 1, ", "3, 5, offset=-1, ")
    ),
    *(Case(f"{_F}.pdist", f"pdist(x{way})", {"x": (rows, 4)}) for rows in (5, 40) for way in ("", ", p=1.0")),
    *(
        Case(
            f"{_F}.interpolate", f"interpolate(x, scale_factor=2{way})", {"x": shape}, ("float32", "float16")
        )
        for way, shape in (
            ("", (1, 2, 3, 5)),
            (", mode='bilinear'", (1, 2, 3, 5)),
            (".0, mode='bilinear', align_corners=True", (2, 1, 4, 4)),
            (", mode='bicubic', align_corners=False", (1, 2, 3, 5)),
            (", mode='linear'", (1, 2, 5)),
        )
    ),
    *(
        Case(
            "torchvision.ops.batched_nms",
            "batched_nms(boxes, scores, classes, 0.5)",
            {
                "boxes": lambda n=n: (
                    torch.rand(n, 4, generator=torch.Generator().manual_seed(3)).cumsum(1) * 50
                ),
                "scores": lambda n=n: torch.rand(n, generator=torch.Generator().manual_seed(4)),
                "classes": lambda n=n: torch.arange(n) % 3,
            },
        )
        for n in (30, 1, 0)
    ),
]

CASES = (*ATTENTION, *LAYERS, *OPTIMIZERS, *OPERATORS)

"""Fused functions of the vendor's plugin against plain formulas on the CPU; prints how far they differ as JSON.

Run by test_fused.py in a process with the plugin: one process for all, starting it costs seconds.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch_npu as npu
from torch import Tensor
from torch.nn import functional

Formula = Callable[..., Any]
WHOLE = 1e-5  # single precision, values about 1
HALF = 2e-2

found: dict[str, float | str] = {}
random = torch.randn


def as_list(results: Any) -> list[Tensor]:
    """The tensors that a function gives."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def distance(one: Tensor, other: Tensor) -> float:
    """The largest difference, of large numbers in proportion."""
    if one.shape != other.shape:
        return math.inf
    if one.numel() == 0:
        return 0.0
    one, other = one.detach().cpu().double(), other.detach().cpu().double()
    return float((one - other).abs().max() / max(1.0, float(one.abs().max())))


def compared(fused: Formula, plain: Formula, inputs: Sequence[Any], *, gradients: bool) -> float:
    """The largest difference of the results, and of the gradients."""
    cpu = [
        one.clone().requires_grad_(gradients and one.is_floating_point()) if isinstance(one, Tensor) else one
        for one in inputs
    ]
    device = [
        one.detach().clone().npu().requires_grad_(one.requires_grad) if isinstance(one, Tensor) else one
        for one in cpu
    ]
    pairs = [
        pair
        for pair in zip(as_list(plain(*cpu)), as_list(fused(*device)), strict=False)
        if pair[0] is not None
    ]
    distances = [distance(*pair) for pair in pairs]
    with_gradient = [pair for pair in pairs if pair[0].requires_grad]
    if with_gradient:
        grads = [torch.randn_like(one) for one, _ in with_gradient]
        leaves = [i for i, one in enumerate(cpu) if isinstance(one, Tensor) and one.requires_grad]
        wanted = torch.autograd.grad([one for one, _ in with_gradient], [cpu[i] for i in leaves], grads)
        given = torch.autograd.grad(
            [other for _, other in with_gradient],
            [device[i] for i in leaves],
            [grad.npu() for grad in grads],
        )
        distances += [distance(*pair) for pair in zip(wanted, given, strict=True)]
    return max(distances)


def check(
    name: str, fused: Formula, plain: Formula, *inputs: Any, gradients: bool = True, most: float = WHOLE
) -> None:
    """Keeps what is too far, or what went wrong."""
    try:
        amount = compared(fused, plain, inputs, gradients=gradients)
        found[name] = 0.0 if amount <= most else amount
    except Exception:
        with contextlib.suppress(Exception):
            torch.npu.synchronize()
        found[name] = traceback.format_exc()[-1500:]


def halves_turned(x: Tensor) -> Tensor:
    """The second half, negative, before the first."""
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


def neighbours_turned(x: Tensor) -> Tensor:
    """Each second feature, negative, before the one before it."""
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    """In single precision."""
    return x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6) * weight


def norms() -> None:
    """Norms, with what is added before them."""
    x, other, weight, bias = random(4, 8, 16), random(4, 8, 16), random(16), random(16)
    check("rms_norm", lambda x, w: npu.npu_rms_norm(x, w, 1e-6)[0], rms_norm, x, weight)
    check(
        "rms_norm in half",
        lambda x, w: npu.npu_rms_norm(x, w, 1e-6)[0],
        lambda x, w: rms_norm(x.float(), w.float()).half(),
        x.half(),
        weight.half(),
        most=HALF,
    )
    check(
        "add_rms_norm",
        lambda x, y, w: npu.npu_add_rms_norm(x, y, w)[::2],
        lambda x, y, w: (rms_norm(x + y, w), x + y),
        x,
        other,
        weight,
        gradients=False,
    )
    check(
        "add_layer_norm",
        lambda x, y, w, b: npu.npu_add_layer_norm(x, y, w, b, 1e-5, True)[::3],
        lambda x, y, w, b: (functional.layer_norm(x + y, (16,), w, b), x + y),
        x,
        other,
        weight,
        bias,
    )
    check(
        "deep_norm",
        lambda x, y, b, w: npu.npu_deep_norm(x, y, b, w, 0.3, 1e-5)[2],
        lambda x, y, b, w: functional.layer_norm(x * 0.3 + y, (16,), w, b),
        x,
        other,
        bias,
        weight,
    )
    check(
        "layer_norm_eval",
        lambda x, w, b: npu.npu_layer_norm_eval(x, (16,), w, b, 1e-5),
        lambda x, w, b: functional.layer_norm(x, (16,), w, b),
        x,
        weight,
        bias,
        gradients=False,
    )


def gates() -> None:
    """Activations of one half that the other half passes."""

    def plain(activation: Formula, first: int = 0) -> Formula:
        return lambda x: activation(x.chunk(2, -1)[first]) * x.chunk(2, -1)[1 - first]

    def tanh_gelu(x: Tensor) -> Tensor:
        return functional.gelu(x, approximate="tanh")

    x = random(4, 8)
    check("swiglu", npu.npu_swiglu, plain(functional.silu), x)
    check("geglu", lambda x: npu.npu_geglu(x, -1, 1, False)[0], plain(tanh_gelu, 1), x)
    check("geglu of the left", lambda x: npu.npu_geglu(x, -1, 1, True)[0], plain(tanh_gelu), x)
    check("gelu_mul", npu.npu_gelu_mul, plain(functional.gelu), x, gradients=False)
    check("fast_gelu", npu.fast_gelu, lambda x: x * torch.sigmoid(1.702 * x), x)


def rotary() -> None:
    """Rotary places."""
    x, cos, sin = random(2, 3, 5, 8), random(1, 1, 5, 8), random(1, 1, 5, 8)
    check("rotary_mul", npu.npu_rotary_mul, lambda x, c, s: x * c + halves_turned(x) * s, x, cos, sin)
    check(
        "rotary_mul of neighbours",
        lambda x, c, s: npu.npu_rotary_mul(x, c, s, "interleave"),
        lambda x, c, s: x * c + neighbours_turned(x) * s,
        x,
        cos,
        sin,
    )
    check(
        "apply_rotary_pos_emb",
        npu.npu_apply_rotary_pos_emb,
        lambda q, k, c, s: tuple(one * c + halves_turned(one) * s for one in (q, k)),
        x,
        random(2, 3, 1, 8),
        random(2, 3, 1, 8),
        random(2, 3, 1, 8),
        gradients=False,
    )


def softmaxes() -> None:
    """Softmax of masked scores, and moves."""
    mask = torch.rand(2, 1, 32, 32) > 0.7
    check(
        "scaled_masked_softmax",
        lambda x, m: npu.npu_scaled_masked_softmax(x, m, 0.5, False),
        lambda x, m: torch.softmax((x * 0.5).masked_fill(m, -10000.0), -1),
        random(2, 3, 32, 32),
        mask,
    )
    check(
        "masked_softmax_with_rel_pos_bias",
        npu.npu_masked_softmax_with_rel_pos_bias,
        lambda x, m, b: torch.softmax(x + m + b, -1),
        random(1, 2, 3, 4, 4),
        random(1, 2, 1, 4, 4),
        random(1, 1, 3, 4, 4),
        gradients=False,
    )
    check(
        "confusion_transpose",
        lambda x: npu.npu_confusion_transpose(x, (0, 2, 1, 3), (2, 5, 24), True),
        lambda x: x.permute(0, 2, 1, 3).reshape(2, 5, 24),
        random(2, 3, 5, 8),
    )
    check("format_cast", lambda x: npu.npu_format_cast(x, 29), lambda x: x, random(16, 16), gradients=False)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    hidden: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    bias_is_scaled: bool = True,
    scale: float = 0.3,
) -> Tensor:
    """Attention over (batch, heads, length, features); keys may have fewer heads."""
    groups = query.size(1) // key.size(1)
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(-1, -2)
    if bias is not None:
        scores = (scores + bias) * scale if bias_is_scaled else scores * scale + bias
    else:
        scores = scores * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    return torch.softmax(scores, -1) @ value


def laid_out(x: Tensor, layout: str) -> Tensor:
    """(batch, heads, length, features) in another order."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    return x.permute(2, 0, 1, 3).flatten(2) if layout == "SBH" else x.transpose(1, 2).flatten(2)


def fused_attention(**options: Any) -> Formula:
    """The plugin's, for four heads."""
    given = {name: one.npu() if isinstance(one, Tensor) else one for name, one in options.items()}
    return lambda q, k, v: npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.3, **given)[0]


SMALL = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def attentions() -> None:
    """Layouts, masks, biases, sequences one after the other."""
    query, key, value = random(2, 4, 24, 8), random(2, 2, 32, 8), random(2, 2, 32, 8)
    for layout in ("BNSD", "BSND", "BSH", "SBH"):
        check(
            f"attention {layout}",
            lambda *x, at=layout: npu.npu_fusion_attention(
                *(laid_out(one, at) for one in x), 4, at, scale=0.3
            )[0],
            lambda *x, at=layout: laid_out(attention(*x), at),
            query,
            key,
            value,
        )
    ahead = torch.arange(32) - torch.arange(24)[:, None]
    mask = torch.rand(2, 1, 24, 32) > 0.6
    columns = torch.cat((torch.zeros(1024, 1024), torch.ones(1024, 1024)), 1).bool()
    prefixed = torch.stack([(ahead > 8) & (torch.arange(32) >= most) for most in (3, 12)])[:, None]
    modes: dict[int, tuple[Tensor, dict[str, Any]]] = {
        0: (mask, {"atten_mask": mask}),
        1: (mask, {"atten_mask": mask}),
        2: (ahead > 0, {"atten_mask": SMALL}),
        3: (ahead > 8, {"atten_mask": SMALL}),
        4: ((ahead > 10) | (ahead < 3), {"atten_mask": SMALL, "pre_tockens": 5, "next_tockens": 2}),
        6: (prefixed, {"atten_mask": torch.cat((SMALL, columns)), "prefix": [3, 12]}),
    }
    for mode, (hidden, options) in modes.items():
        check(
            f"attention in mode {mode}",
            fused_attention(sparse_mode=mode, **options),
            lambda *x, hidden=hidden: attention(*x, hidden),
            query,
            key,
            value,
        )
    check(
        "attention with a bias",
        lambda q, k, v, b: npu.npu_fusion_attention(q, k, v, 4, "BNSD", pse=b, scale=0.3)[0],
        lambda q, k, v, b: attention(q, k, v, None, b),
        query,
        key,
        value,
        random(1, 4, 24, 32),
    )
    check(
        "attention with a bias added last",
        lambda q, k, v, b: npu.npu_fusion_attention_v2(q, k, v, 4, "BNSD", pse=b, scale=0.3, pse_type=0)[0],
        lambda q, k, v, b: attention(q, k, v, None, b, bias_is_scaled=False),
        query,
        key,
        value,
        random(2, 4, 24, 32),
    )
    packed()
    dropped()
    inferred()


QUERY_ENDS, KEY_ENDS = [5, 12, 12, 20], [7, 14, 15, 30]


def one_after_the_other(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> Tensor:
    """Attention within each sequence."""
    parts, first, first_key = [], 0, 0
    for end, key_end in zip(QUERY_ENDS, KEY_ENDS, strict=True):
        one, *both = (
            x[begin:until].transpose(0, 1)[None]
            for x, begin, until in (
                (query, first, end),
                (key, first_key, key_end),
                (value, first_key, key_end),
            )
        )
        ahead = torch.arange(key_end - first_key) - torch.arange(end - first)[:, None]
        hidden = ahead > (key_end - first_key) - (end - first) if causal else None
        parts.append(attention(one, *both, hidden)[0].transpose(0, 1))
        first, first_key = end, key_end
    return torch.cat(parts)


def packed() -> None:
    """Sequences of several lengths."""
    for causal in (False, True):
        options = {"atten_mask": SMALL.npu(), "sparse_mode": 3} if causal else {}
        check(
            f"attention TND{' causal' if causal else ''}",
            lambda q, k, v, options=options: npu.npu_fusion_attention(
                q,
                k,
                v,
                4,
                "TND",
                scale=0.3,
                actual_seq_qlen=QUERY_ENDS,
                actual_seq_kvlen=KEY_ENDS,
                **options,
            )[0],
            lambda *x, causal=causal: one_after_the_other(*x, causal=causal),
            random(20, 4, 8),
            random(30, 2, 8),
            random(30, 2, 8),
        )


def dropped() -> None:
    """What dropout keeps forward it keeps backward: values of the unit matrix show what it keeps."""
    query, key, value = random(2, 4, 24, 8), random(2, 4, 32, 8), random(2, 4, 32, 8)

    def run(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        torch.npu.manual_seed(3)
        return npu.npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.3, keep_prob=0.8)[0]

    unit = torch.eye(32).expand(2, 4, 32, 32).contiguous()
    kept = run(query.npu(), key.npu(), unit.npu()).cpu() != 0

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1) * kept / 0.8 @ v

    found["dropout of attention keeps its share"] = abs(kept.float().mean().item() - 0.8) // 0.05
    check("attention with dropout", run, plain, query, key, value)


def inferred() -> None:
    """Attention that has no backward pass."""
    query, key, value = (random(2, 4, 16, 16).half() for _ in range(3))

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q.float(), k.float(), v.float(), scale=0.25)

    options: dict[str, Any] = {"num_heads": 4, "input_layout": "BNSD"}
    check(
        "prompt_flash_attention",
        lambda *x: npu.npu_prompt_flash_attention(*x, scale_value=0.25, **options),
        plain,
        query,
        key,
        value,
        gradients=False,
        most=HALF,
    )
    check(
        "fused_infer_attention_score",
        lambda *x: npu.npu_fused_infer_attention_score(*x, scale=0.25, **options)[0],
        plain,
        query,
        key,
        value,
        gradients=False,
        most=HALF,
    )
    check(
        "incre_flash_attention",
        lambda *x: npu.npu_incre_flash_attention(*x, scale_value=0.25, actual_seq_lengths=[5, 16], **options),
        lambda q, k, v: torch.cat((plain(q[:1], k[:1, :, :5], v[:1, :, :5]), plain(q[1:], k[1:], v[1:]))),
        query[:, :, :1].contiguous(),
        key,
        value,
        gradients=False,
        most=HALF,
    )


def some_boxes(count: int, size: float = 40.0) -> Tensor:
    """Left, top, right and bottom."""
    corner = torch.rand(count, 2) * size
    return torch.cat((corner, corner + torch.rand(count, 2) * size + 1), 1)


def centered(boxes: Tensor) -> Tensor:
    """Centers, widths and heights, as (4, n)."""
    return torch.cat(((boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]), 1).t().contiguous()


def overlap(kind: str) -> Formula:
    """A loss of boxes as the papers have it."""

    def plain(a: Tensor, b: Tensor) -> Tensor:
        first, second = (torch.stack((x[:2] - x[2:] / 2, x[:2] + x[2:] / 2)) for x in (a, b))
        shared = (torch.min(first[1], second[1]) - torch.max(first[0], second[0])).clamp(min=0).prod(0)
        both = a[2:].prod(0) + b[2:].prod(0) - shared
        around = torch.max(first[1], second[1]) - torch.min(first[0], second[0])
        ratio = shared / both
        if kind == "giou":
            return ratio - (around.prod(0) - both) / around.prod(0)
        near = ratio - (a[:2] - b[:2]).square().sum(0) / around.square().sum(0)
        if kind == "diou":
            return near
        shape = 4 / math.pi**2 * (torch.atan(b[2] / b[3]) - torch.atan(a[2] / a[3])) ** 2
        return near - shape * (shape / (1 - ratio + shape)).detach()

    return plain


def suppressed(boxes: Tensor, scores: Tensor, most: float) -> list[int]:
    """What stays, the highest score first."""
    top = torch.max(boxes[None, :, :2], boxes[:, None, :2])
    shared = (torch.min(boxes[None, :, 2:], boxes[:, None, 2:]) - top).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    ratio = shared / (area[None] + area[:, None] - shared)
    kept: list[int] = []
    for place in scores.argsort(descending=True).tolist():
        if all(ratio[place, other] <= most for other in kept):
            kept.append(place)
    return kept


def boxes() -> None:
    """Overlaps, suppression, regions of interest."""
    first, second = centered(some_boxes(7)), centered(some_boxes(7))
    for kind, options in (("giou", ()), ("diou", ()), ("ciou", (True,))):
        check(
            kind,
            lambda a, b, kind=kind, options=options: getattr(npu, f"npu_{kind}")(
                a, b, True, False, 0, *options
            ).flatten(),
            overlap(kind),
            first,
            second,
            most=1e-3,
        )
    places, scores = some_boxes(50), torch.rand(50)
    check(
        "nms_v4",
        lambda b, s: (lambda found, count: found[:count])(
            *npu.npu_nms_v4(b, s, 50, torch.tensor(0.5).npu(), torch.tensor(-1.0).npu())
        ),
        lambda b, s: torch.tensor(suppressed(b, s, 0.5)),
        places,
        scores,
        gradients=False,
    )
    pixels = torch.arange(1.0, 37.0).view(1, 1, 6, 6)
    check(
        "roi_align",
        lambda x, r: npu.npu_roi_align(x, r, 0.25, 3, 3, 2, 0),
        lambda x, r: functional.avg_pool2d(x, 2),
        pixels,
        torch.tensor([[0, -2.0, -2.0, 22.0, 22.0]]),
        gradients=False,
    )


def bytes_of(*sizes: int) -> Tensor:
    """Whole numbers of eight bits."""
    return torch.randint(-128, 128, sizes).to(torch.int8)


def quantization() -> None:
    """Numbers of eight bits."""

    def by_rows(x: Tensor) -> tuple[Tensor, Tensor]:
        scale = x.float().abs().amax(-1) / 127
        return (x.float() / scale[:, None]).round(), scale

    check("dynamic_quant", npu.npu_dynamic_quant, by_rows, random(4, 8).half(), gradients=False)
    check(
        "quantize",
        lambda x, s, z: npu.npu_quantize(x, s, z, torch.qint8, 0, True),
        lambda x, s, z: (x / s[:, None]).round().clamp(-128, 127),
        random(4, 8),
        torch.rand(4) + 0.01,
        torch.zeros(4),
        gradients=False,
    )
    check(
        "quant_matmul",
        lambda a, b, s: npu.npu_quant_matmul(a, b, s, output_dtype=torch.float16),
        lambda a, b, s: (a.int() @ b.int()).float() * s,
        bytes_of(4, 32),
        bytes_of(32, 6),
        torch.full((6,), 2.0**-8),
        gradients=False,
        most=HALF,
    )
    check(
        "weight_quant_batchmatmul",
        npu.npu_weight_quant_batchmatmul,
        lambda x, w, s, o: x.float() @ ((w.float() + o.float()) * s.float()),
        random(4, 8).half(),
        bytes_of(8, 6),
        torch.rand(6).half(),
        random(6).half(),
        gradients=False,
        most=HALF,
    )


def experts() -> None:
    """Tokens to experts and back."""
    rows, count, most, width = 6, 5, 2, 8
    tokens, chosen, likely = (
        random(rows, width),
        torch.randint(0, count, (rows, most)),
        torch.rand(rows, most),
    )
    check(
        "moe_gating_top_k_softmax",
        lambda x: npu.npu_moe_gating_top_k_softmax(x, None, most)[:2],
        lambda x: tuple(torch.softmax(x, -1).topk(most)),
        random(rows, count),
        gradients=False,
    )

    def there_and_back(x: Tensor, to: Tensor, by: Tensor) -> Tensor:
        moved, places = npu.npu_moe_token_permute(x, to)
        return npu.npu_moe_token_unpermute(moved * 2, places, by)

    check(
        "moe_token_permute and unpermute",
        there_and_back,
        lambda x, to, by: (2 * x[:, None] * by[..., None]).sum(1),
        tokens,
        chosen.int(),
        likely,
    )
    taken = torch.zeros(rows, count, dtype=torch.bool)
    taken.scatter_(1, torch.stack([torch.randperm(count)[:most] for _ in range(rows)]), True)

    def routed(x: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
        """Each token to its experts, which double it and add what they hold of it, and back."""
        to = taken.to(x.device)
        moved, weights, places = npu.npu_moe_token_permute_with_routing_map(
            x, to, probs=by, num_out_tokens=rows * most
        )
        back = npu.npu_moe_token_unpermute_with_routing_map(
            moved * 2, places, list(x.shape), probs=by, routing_map=to
        )
        return back, weights

    def plainly_routed(x: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
        return 2 * x * (by * taken).sum(1, keepdim=True), by.t().masked_select(taken.t())

    for dtype in (torch.float32, torch.bfloat16):
        check(
            f"moe_token_permute_with_routing_map and back in {dtype}",
            routed,
            plainly_routed,
            tokens.to(dtype),
            torch.rand(rows, count).to(dtype),
            most=WHOLE if dtype == torch.float32 else HALF,
        )
    check(
        "moe_token_permute_with_routing_map without weights",
        lambda x: npu.npu_moe_token_unpermute_with_routing_map(
            *npu.npu_moe_token_permute_with_routing_map(x, taken.npu(), num_out_tokens=rows * most)[::2],
            [rows, width],
        ),
        lambda x: x * most,
        tokens,
    )
    ends = [2, 2, 5, 9, 12]
    check(
        "grouped_matmul",
        lambda x, w: npu.npu_grouped_matmul(
            [x], [w], group_list=torch.tensor(ends).npu(), split_item=3, group_type=0, group_list_type=0
        )[0],
        lambda x, w: torch.cat(
            [x[begin:end] @ w[i] for i, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))]
        ),
        random(12, width),
        random(count, width, 4),
        gradients=False,
    )


def waiting() -> None:
    """A stream that does nothing for a while."""
    begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
    begin.record()
    torch.npu._sleep(20_000_000)
    end.record()
    end.synchronize()
    found["sleep"] = 0.0 if begin.elapsed_time(end) >= 20 else begin.elapsed_time(end)


def refused() -> None:
    """What can't be computed is an error, never a warning with numbers that nobody computed."""
    mask = torch.ones(24, 24, dtype=torch.bool).npu()
    query = random(1, 4, 24, 8).npu()
    try:
        npu.npu_fusion_attention(query, query, query, 4, "BNSD", atten_mask=mask, sparse_mode=3)
        torch.npu.synchronize()
        found["a small mask of the wrong size is refused"] = 1.0
    except RuntimeError as error:
        found["a small mask of the wrong size is refused"] = 0.0 if "2048" in str(error) else str(error)


def main() -> None:
    """Each function's name, and how far it is beyond what it may be."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for part in (norms, gates, rotary, softmaxes, attentions, boxes, quantization, experts, waiting, refused):
        part()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()

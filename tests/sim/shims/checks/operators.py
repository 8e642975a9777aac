"""torch_npu's own operators against torch's."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch_npu  # type: ignore[import-not-found]
from torch import Tensor
from torch.nn import functional

from tests.sim.shims.checks.amp import raises


def random(*shape: int, device: str, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(device, dtype)


def check_rms_norm(device: str) -> None:
    tensor, gamma = random(3, 5, 8, device=device), random(8, device=device)
    normed, reciprocal = torch_npu.npu_rms_norm(tensor, gamma, 1e-5)
    torch.testing.assert_close(normed, functional.rms_norm(tensor, (8,), gamma, 1e-5))
    torch.testing.assert_close(reciprocal, 1 / torch.sqrt(tensor.pow(2).mean(-1, keepdim=True) + 1e-5))
    half, _ = torch_npu.npu_rms_norm(tensor.half(), gamma.half())
    assert half.dtype == torch.float16
    both = torch_npu.npu_add_rms_norm(tensor, tensor, gamma)
    torch.testing.assert_close(both[0], torch_npu.npu_rms_norm(2 * tensor, gamma)[0])
    assert torch.equal(both[2], tensor + tensor)


def check_rms_norm_has_gradients(device: str) -> None:
    tensor, gamma = random(4, 8, device=device).requires_grad_(), random(8, device=device).requires_grad_()
    torch_npu.npu_rms_norm(tensor, gamma)[0].sum().backward()
    twin = [tensor.detach().clone().requires_grad_(), gamma.detach().clone().requires_grad_()]
    functional.rms_norm(twin[0], (8,), twin[1], 1e-6).sum().backward()
    torch.testing.assert_close(tensor.grad, twin[0].grad)
    torch.testing.assert_close(gamma.grad, twin[1].grad)


def check_activations(device: str) -> None:
    tensor = random(3, 8, device=device)
    left, right = tensor.chunk(2, dim=-1)
    torch.testing.assert_close(torch_npu.npu_swiglu(tensor), functional.silu(left) * right)
    torch.testing.assert_close(torch_npu.npu_silu(tensor), functional.silu(tensor))
    torch.testing.assert_close(torch_npu.npu_mish(tensor), functional.mish(tensor))
    torch.testing.assert_close(
        torch_npu.npu_gelu(tensor, approximate="tanh"), functional.gelu(tensor, approximate="tanh")
    )
    product, gate = torch_npu.npu_geglu(tensor)
    torch.testing.assert_close(product, left * functional.gelu(right, approximate="tanh"))
    torch.testing.assert_close(gate, functional.gelu(right, approximate="tanh"))
    torch.testing.assert_close(torch_npu.npu_fast_gelu(tensor), functional.gelu(tensor), rtol=0.1, atol=0.03)


def check_rotary(device: str) -> None:
    tensor, angle = random(2, 3, 5, 8, device=device), random(1, 1, 5, 4, device=device)
    for mode in ("half", "interleave"):
        wide = torch.cat([angle, angle], -1) if mode == "half" else angle.repeat_interleave(2, -1)
        turned = torch_npu.npu_rotary_mul(tensor, wide.cos(), wide.sin(), mode)
        if mode == "half":
            pairs, results = tensor.chunk(2, -1), turned.chunk(2, -1)
        else:
            pairs, results = (tensor[..., ::2], tensor[..., 1::2]), (turned[..., ::2], turned[..., 1::2])
        torch.testing.assert_close(results[0], pairs[0] * angle.cos() - pairs[1] * angle.sin())
        torch.testing.assert_close(results[1], pairs[0] * angle.sin() + pairs[1] * angle.cos())
    query, key = torch_npu.npu_apply_rotary_pos_emb(
        tensor, tensor * 2, wide.cos(), wide.sin(), rotary_mode="interleave"
    )
    assert torch.equal(query, turned)
    torch.testing.assert_close(key, turned * 2)


def attention(query: Tensor, key: Tensor, value: Tensor, layout: str, **settings: Any) -> Any:
    """The adapter's call with tensors given as batch, head, sequence, width."""
    forms = {
        "BNSD": lambda tensor: tensor,
        "BSND": lambda tensor: tensor.transpose(1, 2),
        "BSH": lambda tensor: tensor.transpose(1, 2).flatten(2),
        "SBH": lambda tensor: tensor.permute(2, 0, 1, 3).flatten(2),
    }
    inputs = [forms[layout](tensor) for tensor in (query, key, value)]
    return torch_npu.npu_fusion_attention(*inputs, query.size(1), layout, **settings), forms[layout]


def check_attention_layouts(device: str) -> None:
    query = random(2, 4, 5, 8, device=device)
    key, value = random(2, 4, 7, 8, device=device), random(2, 4, 7, 8, device=device) * 2
    expected = functional.scaled_dot_product_attention(query, key, value)
    for layout in ("BNSD", "BSND", "BSH", "SBH"):
        result, form = attention(query, key, value, layout, scale=1 / math.sqrt(8))
        torch.testing.assert_close(result[0], form(expected))
        assert result[1].shape == (2, 4, 5, 8) and result[1].dtype == torch.float32
        scores = query @ key.transpose(-1, -2) / math.sqrt(8)
        torch.testing.assert_close(result[1][..., 0], scores.amax(-1))
        torch.testing.assert_close(
            result[2][..., 3], torch.exp(scores - scores.amax(-1, keepdim=True)).sum(-1)
        )


def check_attention_masks(device: str) -> None:
    query = random(1, 2, 5, 4, device=device)
    key, value = random(1, 2, 7, 4, device=device), random(1, 2, 7, 4, device=device) * 3
    scale = 0.5
    hidden = torch.rand(5, 7, generator=torch.Generator().manual_seed(0)).to(device) > 0.7
    left = torch.ones(5, 7, device=device).triu(1).bool()
    right = torch.ones(5, 7, device=device).triu(3).bool()
    compressed = torch.ones(2048, 2048, device=device).triu(1).bool()
    for mode, given, mask in ((0, hidden, hidden), (2, compressed, left), (3, compressed, right)):
        result, form = attention(query, key, value, "BSH", atten_mask=given, sparse_mode=mode, scale=scale)
        expected = functional.scaled_dot_product_attention(query, key, value, attn_mask=~mask, scale=scale)
        torch.testing.assert_close(result[0], form(expected))
    band, form = attention(
        query, key, value, "BNSD", sparse_mode=4, pre_tockens=1, next_tockens=0, scale=scale
    )
    distance = torch.arange(7, device=device) - torch.arange(5, device=device)[:, None] - 2
    expected = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=(distance <= 0) & (distance >= -1), scale=scale
    )
    torch.testing.assert_close(band[0], expected)


def check_attention_shares_heads_and_takes_a_bias(device: str) -> None:
    query = random(2, 4, 3, 8, device=device)
    key, value = random(2, 2, 6, 8, device=device), random(2, 2, 6, 8, device=device) * 2
    bias = random(2, 4, 3, 6, device=device)
    wide = [tensor.repeat_interleave(2, dim=1) for tensor in (key, value)]
    expected = functional.scaled_dot_product_attention(query, *wide, attn_mask=bias, scale=1.0)
    for layout in ("BNSD", "BSH"):
        result, form = attention(query, key, value, layout, pse=bias)
        torch.testing.assert_close(result[0], form(expected))


def check_attention_of_sequences_of_different_lengths(device: str) -> None:
    query, key = random(9, 2, 4, device=device), random(11, 2, 4, device=device)
    value = key * 2 + 1
    result = torch_npu.npu_fusion_attention(
        query, key, value, 2, "TND", scale=0.5, actual_seq_qlen=[4, 9], actual_seq_kvlen=[5, 11]
    )
    parts = []
    for own, other in ((slice(0, 4), slice(0, 5)), (slice(4, 9), slice(5, 11))):
        heads = [tensor.transpose(0, 1) for tensor in (query[own], key[other], value[other])]
        parts.append(functional.scaled_dot_product_attention(*heads, scale=0.5).transpose(0, 1))
    torch.testing.assert_close(result[0], torch.cat(parts))
    assert result[1].shape == (2, 9, 8)


def check_attention_has_gradients_and_hides_whole_rows(device: str) -> None:
    query = random(1, 1, 4, 4, device=device).requires_grad_()
    key = random(1, 1, 2, 4, device=device)
    result = torch_npu.npu_fusion_attention(query, key, key, 1, "BNSD", sparse_mode=3)
    assert not result[0][0, 0, :2].any()  # the first two rows see nothing
    result[0].sum().backward()
    assert query.grad is not None and bool(torch.isfinite(query.grad).all())


def check_what_attention_can_not_do_is_said(device: str) -> None:
    tensor = random(1, 1, 2, 4, device=device)
    with raises(NotImplementedError, "npu_fusion_attention: sparse_mode=6"):
        torch_npu.npu_fusion_attention(tensor, tensor, tensor, 1, "BNSD", sparse_mode=6)
    with raises(NotImplementedError, "input_layout='NSBD'"):
        torch_npu.npu_fusion_attention(tensor, tensor, tensor, 1, "NSBD")


def check_masked_softmax(device: str) -> None:
    scores = random(2, 2, 4, 4, device=device)
    mask = torch.ones(4, 4, device=device).triu(1).bool()
    expected = functional.softmax((scores * 0.3).masked_fill(mask, -10000.0), -1)
    torch.testing.assert_close(torch_npu.npu_scaled_masked_softmax(scores, mask, 0.3), expected)
    torch.testing.assert_close(torch_npu.npu_scaled_masked_softmax(scores, mask, 0.3, True), expected)


def check_shapes(device: str) -> None:
    tensor = random(2, 3, 4, 6, device=device)
    first = torch_npu.npu_confusion_transpose(tensor, (0, 2, 1, 3), (2, 4, 18), True)
    assert torch.equal(first, tensor.permute(0, 2, 1, 3).reshape(2, 4, 18))
    second = torch_npu.npu_confusion_transpose(tensor, (0, 2, 1, 3), (2, 12, 3, 2), False)
    assert torch.equal(second, tensor.reshape(2, 12, 3, 2).permute(0, 2, 1, 3))
    assert torch_npu.npu_transpose(tensor, (0, 2, 1, 3)).is_contiguous()
    assert torch.equal(torch_npu.npu_slice(tensor, [0, 1, 0, 2], [2, 2, 3, 3]), tensor[:, 1:3, :3, 2:5])
    padded = torch_npu.npu_pad(tensor[0, 0], [1, 2, 0, 3])
    assert padded.shape == (7, 9) and torch.equal(padded[1:5, :6], tensor[0, 0])
    assert torch.equal(torch_npu.npu_linear(tensor, tensor[0, 0]), functional.linear(tensor, tensor[0, 0]))
    values, places = torch_npu.npu_max(tensor, 1)
    assert torch.equal(values, tensor.max(1).values) and places.dtype == torch.int32


def check_one_hot(device: str) -> None:
    classes = torch.tensor([5, 3, 2, 1], device=device)
    expected = torch.zeros(4, 5)
    expected[[1, 2, 3], [3, 2, 1]] = 1.0
    assert torch.equal(torch_npu.npu_one_hot(classes, depth=5).cpu(), expected)
    assert (
        torch_npu.npu_one_hot(classes, depth=5, on_value=0.9, off_value=0.1)[1, 3].item()
        == torch.tensor(0.9).item()
    )


def check_formats(device: str) -> None:
    tensor = random(2, 3, 4, 4, device=device)
    assert torch_npu.get_npu_format(tensor) == 0 and torch_npu.get_npu_format(tensor[0]) == 2
    cast = torch_npu.npu_format_cast(tensor, 29)
    assert torch_npu.get_npu_format(cast) == 29 and torch_npu.get_npu_format(tensor) == 0
    assert torch.equal(cast, tensor) and cast.data_ptr() != tensor.data_ptr()
    assert torch_npu.get_npu_format(torch_npu.npu_format_cast_(tensor, cast)) == 29
    assert torch_npu.npu_dtype_cast(tensor, torch.float16).dtype == torch.float16
    assert torch_npu.get_storage_size(tensor) == 96


def check_boxes(device: str) -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [10, 10, 20, 20], [32, 32, 38, 42]], device=device)
    truths = torch.tensor([[0.0, 0, 10, 20], [0, 10, 10, 10], [10, 10, 20, 20]], device=device)
    overlaps = torch_npu.npu_iou(boxes, truths, 0)
    assert overlaps.dtype == torch.float16 and overlaps.shape == (3, 3)
    expected = torch.tensor([[0.5, 0, 0], [0, 0, 0], [0, 1, 0]])
    torch.testing.assert_close(overlaps.float().cpu(), expected, rtol=0, atol=2e-3)
    torch.testing.assert_close(torch_npu.npu_ptiou(boxes, truths).float().cpu(), expected, rtol=0, atol=2e-3)
    over_truth = torch_npu.npu_ptiou(boxes[:1] * 2, truths, 1).float().cpu()
    torch.testing.assert_close(over_truth[:, 0], torch.tensor([1.0, 0, 1.0]), rtol=0, atol=2e-3)


def check_experts(device: str) -> None:
    tokens, experts = (
        random(5, 4, device=device),
        torch.tensor([[2, 0], [1, 0], [2, 1], [0, 2], [1, 2]], device=device),
    )
    weights = random(3, 4, 6, device=device)
    probs = torch.softmax(random(5, 2, device=device), -1)
    expected = torch.stack(
        [sum(probs[t, k] * (tokens[t] @ weights[int(experts[t, k])]) for k in range(2)) for t in range(5)]  # type: ignore[misc]
    )
    sorted_tokens, places = torch_npu.npu_moe_token_permute(tokens, experts)
    counts = torch.bincount(experts.flatten().cpu(), minlength=3)
    for kind, groups in ((1, counts), (0, counts.cumsum(0)), (0, counts.cumsum(0).tolist())):
        products = torch_npu.npu_grouped_matmul(
            [sorted_tokens], [weights], group_list=groups, split_item=2, group_type=0, group_list_type=kind
        )
        assert len(products) == 1
        torch.testing.assert_close(torch_npu.npu_moe_token_unpermute(products[0], places, probs), expected)
    apart = torch_npu.npu_grouped_matmul([tokens[:2], tokens[2:]], [weights[0], weights[1]], split_item=0)
    torch.testing.assert_close(apart, [tokens[:2] @ weights[0], tokens[2:] @ weights[1]])
    with raises(NotImplementedError, "npu_grouped_matmul: scale is not simulated"):
        torch_npu.npu_grouped_matmul([tokens], [weights[0]], scale=[tokens])


def check_tokens_that_are_cut_off_count_nothing(device: str) -> None:
    tokens, experts = random(3, 4, device=device), torch.tensor([1, 0, 1], device=device)
    kept, places = torch_npu.npu_moe_token_permute(tokens, experts, num_out_tokens=2)
    assert torch.equal(kept, tokens[[1, 0]])
    back = torch_npu.npu_moe_token_unpermute(kept, places)
    assert torch.equal(back[:2], tokens[:2]) and not back[2].any()


def check_what_is_not_simulated_is_said_when_it_is_called(device: str) -> None:
    assert hasattr(torch_npu, "npu_quant_matmul")
    with raises(NotImplementedError, "torch_npu.npu_quant_matmul exists on the card"):
        torch_npu.npu_quant_matmul([], [])
    assert not hasattr(torch_npu, "npu_no_such_operator")
    with raises(AttributeError, "has no attribute 'npu_no_such_operator'"):
        _ = torch_npu.npu_no_such_operator


def check_only_names_of_the_adapter_are_there(device: str) -> None:
    from torch_npu.operators import OPERATOR_NAMES

    assert set(torch_npu._OPERATORS) <= OPERATOR_NAMES


def check_operators_are_under_torch_ops_and_no_longer_under_torch(device: str) -> None:
    tensor = random(2, 4, device=device)
    assert torch.equal(torch.ops.npu.npu_swiglu(tensor), torch_npu.npu_swiglu(tensor))
    with raises(NotImplementedError, "npu_quant_matmul exists on the card"):
        torch.ops.npu.npu_quant_matmul(tensor, tensor)
    with raises(RuntimeError, "torch.npu_swiglu is deprecated and will be removed in future version"):
        torch.npu_swiglu(tensor)  # type: ignore[attr-defined]
    with raises(RuntimeError, "Use torch_npu.npu_format_cast instead"):
        tensor.npu_format_cast(2)  # type: ignore[operator]
    assert torch.equal(
        torch.rms_norm(tensor, (4,)), functional.rms_norm(tensor, (4,))
    )  # torch's own names stay


def check_combined_tensors(device: str) -> None:
    from torch_npu.utils import get_part_combined_tensor, is_combined_tensor_valid, npu_combine_tensors

    tensors = [random(3, device=device), random(2, 2, device=device)]
    before = [tensor.clone() for tensor in tensors]
    combined = npu_combine_tensors(tensors)
    assert is_combined_tensor_valid(combined, tensors)
    assert all(map(torch.equal, tensors, before))
    get_part_combined_tensor(combined, 3, 4).zero_()
    assert not tensors[1].any() and tensors[0].any()

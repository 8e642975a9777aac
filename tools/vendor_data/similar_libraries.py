"""What stands in for functions of flash-attn, xformers and apex."""

from __future__ import annotations

from vendor_data.similar import Entry, Pair

_ASCEND = ("ascend",)
_PLAIN = ("any", "tecorigin", "moorethreads", "intel")  # where attention is torch's own
_OLDER = ("cambricon",)  # as well, of a torch before 2.5, which knows no enable_gqa
_ANY = ("any",)  # vendors have a drop-in of their own in replacements.toml
_CUDA_ONLY: Pair = ("built for CUDA only", "只面向 CUDA 构建")
_SDPA = "torch.nn.functional.scaled_dot_product_attention"
_NPU = "torch_npu.npu_fusion_attention"

_FLASH = "flash_attn.flash_attn_func(q,k,v,dropout_p,softmax_scale,causal)"
_VARLEN = "flash_attn.flash_attn_varlen_func"
_ATTENTION = "dropout_p=0.0, softmax_scale=None, causal=False"
# Positions after `causal` changed between releases of flash-attn, so that only keywords are certain.
_REST = (
    "*, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False, return_attn_probs=False"
)
_SDPA_REMARK: Pair = (
    "rounding differs from flash-attn; how much memory and time it takes depends on the device's kernel",
    "舍入与 flash-attn 不同；显存与耗时取决于设备算子",
)
_OLDER_REMARK: Pair = (
    f"{_SDPA_REMARK[0]}; keys must have as many heads as queries",
    f"{_SDPA_REMARK[1]}；key 与 query 的头数必须相同",
)
_NPU_REMARK: Pair = (
    "rounding differs from flash-attn; the causal form allocates a mask of 2048 x 2048 at each call",
    "舍入与 flash-attn 不同；causal 形式每次调用分配 2048 x 2048 的掩码",
)
_ENDING = "[[, dropout_p={dropout_p}]]"
_BACK = ").transpose(1, 2).contiguous()"


def _lower_right(query: str, key: str) -> str:
    """flash-attn's causal mask: the last query sees all keys."""
    return (
        f"torch.ones({query}.size(1), {key}.size(1), dtype=torch.bool, device={query}.device)"
        f".tril({key}.size(1) - {query}.size(1))"
    )


def _plain_attention(tensors: str, key: str, heads: str = "") -> list[tuple[str, tuple[str, ...]]]:
    """Templates with their conditions; is_causal is kept where it means the same, since fast kernels know it."""
    query = "{q}"
    rest = "[[, scale={softmax_scale}]]" + (f", enable_gqa={query}.size(2) != {heads}" if heads else "")
    start = f"{_SDPA}({tensors}"
    same = f"{query}.size(1) == {key}.size(1)"
    mask = _lower_right(query, key)
    literal = f", attn_mask=None if {same} else {mask}{_ENDING}, is_causal={same}{rest}"
    decided = (
        f", attn_mask={mask} if {{causal}} and {query}.size(1) != {key}.size(1) else None{_ENDING}"
        f", is_causal={{causal}} and {same}{rest}"
    )
    return [
        (f"{start}{_ENDING}{rest}{_BACK}", ()),
        (f"{start}{literal}{_BACK}", ("causal=True",)),
        (f"{start}{decided}{_BACK}", ()),
    ]


def _npu_attention(start: str, query: str, layout: str, rest: str = "") -> list[tuple[str, tuple[str, ...]]]:
    common = (
        f'{_NPU}({start}, input_layout="{layout}"[[, keep_prob=1 - {{dropout_p}}]]'
        f", scale=[[{{softmax_scale}} or ]]{query}.size(-1) ** -0.5{rest}"
    )
    mask = f"torch.ones(2048, 2048, dtype=torch.bool, device={query}.device).triu(1)"
    return [
        (f"{common})[0]", ()),
        (f"{common}, atten_mask={mask}, sparse_mode=3)[0]", ("causal=True",)),
        (
            f"{common}, atten_mask={mask} if {{causal}} else None, sparse_mode=3 if {{causal}} else 0)[0]",
            (),
        ),
    ]


def _attention(
    name: str, tensors: str, fact: str, templates: list[tuple[str, tuple[str, ...]]], vendors: tuple[str, ...]
) -> list[Entry]:
    remarks: dict[tuple[str, ...], Pair] = {_ASCEND: _NPU_REMARK, _OLDER: _OLDER_REMARK}
    remark = remarks.get(vendors, _SDPA_REMARK)
    return [
        Entry(
            f"flash_attn.{name}({tensors}, {_ATTENTION}, {_REST})",
            use,
            vendors,
            fact,
            also=(f"flash_attn.flash_attn_interface.{name}",),
            when=when,
            ignored=("deterministic", "max_seqlen_q", "max_seqlen_k"),
            exact=True,
            why=_CUDA_ONLY,
            remark=remark,
        )
        for use, when in templates
    ]


_TENSORS = "{q}.transpose(1, 2), {k}.transpose(1, 2), {v}.transpose(1, 2)"
_KV_TENSORS = "{q}.transpose(1, 2), *{kv}.transpose(1, 3).unbind(2)"
_PACKED = "{qkv}.transpose(1, 3).unbind(2)"
_VARLEN_TENSORS = "q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k"
_LENGTHS = ", actual_seq_qlen=tuple({cu_seqlens_q}[1:].tolist()), actual_seq_kvlen=tuple({cu_seqlens_k}[1:].tolist())"

_FLASH_ATTENTION = (
    *_attention(
        "flash_attn_func", "q, k, v", _FLASH, _plain_attention(_TENSORS, "{k}", "{k}.size(2)"), _PLAIN
    ),
    *_attention("flash_attn_func", "q, k, v", _FLASH, _plain_attention(_TENSORS, "{k}"), _OLDER),
    *_attention(
        "flash_attn_func",
        "q, k, v",
        _FLASH,
        _npu_attention("{q}, {k}, {v}, {q}.size(2)", "{q}", "BSND"),
        _ASCEND,
    ),
    *_attention(
        "flash_attn_qkvpacked_func",
        "qkv",
        _FLASH,
        [(f"{_SDPA}(*{_PACKED}{_ENDING}[[, scale={{softmax_scale}}]][[, is_causal={{causal}}]]{_BACK}", ())],
        (*_PLAIN, *_OLDER),
    ),
    *_attention(
        "flash_attn_qkvpacked_func",
        "qkv",
        _FLASH,
        _npu_attention("*{qkv}.unbind(2), {qkv}.size(3)", "{qkv}", "BSND"),
        _ASCEND,
    ),
    *_attention(
        "flash_attn_kvpacked_func",
        "q, kv",
        _FLASH,
        _plain_attention(_KV_TENSORS, "{kv}", "{kv}.size(3)"),
        _PLAIN,
    ),
    *_attention("flash_attn_kvpacked_func", "q, kv", _FLASH, _plain_attention(_KV_TENSORS, "{kv}"), _OLDER),
    *_attention(
        "flash_attn_kvpacked_func",
        "q, kv",
        _FLASH,
        _npu_attention("{q}, *{kv}.unbind(2), {q}.size(2)", "{q}", "BSND"),
        _ASCEND,
    ),
    *_attention(
        "flash_attn_varlen_func",
        _VARLEN_TENSORS,
        _VARLEN,
        _npu_attention("{q}, {k}, {v}, {q}.size(1)", "{q}", "TND", _LENGTHS),
        _ASCEND,
    ),
    Entry(
        f"flash_attn.flash_attn_varlen_func({_VARLEN_TENSORS}, {_ATTENTION}, {_REST})",
        vendors=(*_PLAIN, *_OLDER),
        fact=_VARLEN,
        also=("flash_attn.flash_attn_interface.flash_attn_varlen_func",),
        why=_CUDA_ONLY,
        remark=(
            "torch has no attention over packed sequences on every device: pad them and use a mask",
            "torch 没有各设备通用的变长注意力：请补齐并使用掩码",
        ),
    ),
)

_TURN = (
    "(lambda x, cos, sin: torch.cat((x[..., : cos.size(-1)] * cos - x[..., cos.size(-1) : 2 * cos.size(-1)] * sin, "
    "x[..., : cos.size(-1)] * sin + x[..., cos.size(-1) : 2 * cos.size(-1)] * cos, x[..., 2 * cos.size(-1) :]), -1)"
    ".to(x.dtype))({x}, {cos}[: {x}.size(1)].unsqueeze(1), {sin}[: {x}.size(1)].unsqueeze(1))"
)
_MEMORY_EFFICIENT = (
    f"{_SDPA}(*(x.reshape(x.size(0), x.size(1), -1, x.size(-1)).transpose(1, 2) for x in ({{query}}, {{key}}, {{value}}))"
    "[[, dropout_p={p}]][[, scale={scale}]]CAUSAL).transpose(1, 2).reshape({query}.shape[:-1] + (-1,))"
)
_XFORMERS_ATTENTION = "xformers.ops.memory_efficient_attention"
_XFORMERS = f"{_XFORMERS_ATTENTION}(query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None)"
_XFORMERS_REMARK: Pair = (
    "rounding differs from xformers; how much memory it takes depends on the device's kernel",
    "舍入与 xformers 不同；显存占用取决于设备算子",
)

_OTHER_ATTENTION = (
    Entry(
        "flash_attn.layers.rotary.apply_rotary_emb(x, cos, sin, interleaved=False, inplace=False, "
        "seqlen_offsets=0, cu_seqlens=None, max_seqlen=None)",
        _TURN,
        fact="flash_attn.layers.rotary.apply_rotary_emb",
        exact=True,
        why=_CUDA_ONLY,
        remark=("several operators in the place of one kernel", "由多个算子代替一个融合算子"),
    ),
    Entry(
        _XFORMERS,
        _MEMORY_EFFICIENT.replace("CAUSAL", ""),
        fact=_XFORMERS_ATTENTION,
        ignored=("op",),
        exact=True,
        why=_CUDA_ONLY,
        remark=_XFORMERS_REMARK,
    ),
    Entry(
        _XFORMERS,
        _MEMORY_EFFICIENT.replace("CAUSAL", ", is_causal=True"),
        fact=_XFORMERS_ATTENTION,
        when=("attn_bias=xformers.ops.LowerTriangularMask()",),
        ignored=("op",),
        exact=True,
        why=_CUDA_ONLY,
        remark=_XFORMERS_REMARK,
    ),
    Entry("xformers.ops.unbind", "torch.unbind", fact="xformers.ops.unbind", exact=True, why=_CUDA_ONLY),
    Entry(
        "xformers.ops.SwiGLU(in_features, hidden_features, out_features=None, bias=True, *, _pack_weights=True)",
        fact="xformers.ops.SwiGLU / fused swiglu",
        why=_CUDA_ONLY,
        remark=(
            "write the module with torch.nn.functional.silu(a) * b; its weights are packed, so checkpoints change",
            "请用 torch.nn.functional.silu(a) * b 编写该模块；其权重是合并存放的，检查点会随之改变",
        ),
    ),
)

_XENTROPY = (
    "apex.contrib.xentropy.SoftmaxCrossEntropyLoss.apply(logits, labels, smoothing=0.0, padding_idx=0, "
    "half_to_float=False)"
)
_LOSS = (
    "torch.nn.functional.cross_entropy({logits}WIDE, {labels}, label_smoothing={smoothing}, "
    'ignore_index={padding_idx}, reduction="none")'
)
_APEX_DDP = (
    "module, message_size=10000000, delay_allreduce=False, shared_param=None, allreduce_trigger_params=None, "
    "retain_allreduce_buffers=False, allreduce_always_fp32=False, num_allreduce_streams=1, "
    "allreduce_communicators=None, gradient_average=True, gradient_predivide_factor=1.0, "
    "gradient_average_split_factor=None, prof=False"
)

_APEX = (
    Entry(
        "apex.contrib.clip_grad.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm_",
        fact="apex.contrib.clip_grad / multi_tensor_applier",
        exact=True,
        why=_CUDA_ONLY,
    ),
    *(
        Entry(
            _XENTROPY,
            _LOSS.replace("WIDE", wide),
            known="NVIDIA/apex apex/contrib/xentropy/softmax_xentropy.py",
            when=(f"half_to_float={flag}",),
            exact=True,
            why=_CUDA_ONLY,
        )
        for flag, wide in (("False", ""), ("True", ".float()"))
    ),
    Entry(
        "apex.contrib.layer_norm.FastLayerNorm(hidden_size, eps=1e-05)",
        "torch.nn.LayerNorm({hidden_size}[[, eps={eps}]])",
        known="NVIDIA/apex apex/contrib/layer_norm/layer_norm.py",
        exact=True,
        why=_CUDA_ONLY,
    ),
    Entry(
        "apex.fused_dense.FusedDense(in_features, out_features, bias=True)",
        "torch.nn.Linear({in_features}, {out_features}[[, bias={bias}]])",
        known="NVIDIA/apex apex/fused_dense/fused_dense.py",
        exact=True,
        why=_CUDA_ONLY,
        remark=("weights begin as those of torch.nn.Linear", "权重按 torch.nn.Linear 的方式初始化"),
    ),
    Entry(
        "apex.optimizers.FusedAdagrad(params, lr=0.01, eps=1e-10, weight_decay=0.0, set_grad_none=True, "
        "adagrad_w_mode=False)",
        "torch.optim.Adagrad(...)",
        known="NVIDIA/apex apex/optimizers/fused_adagrad.py",
        takes=("params", "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"),
        ignored=("set_grad_none",),
        exact=True,
        why=_CUDA_ONLY,
    ),
    Entry(
        f"apex.parallel.DistributedDataParallel({_APEX_DDP})",
        "torch.nn.parallel.DistributedDataParallel({module})",
        fact="apex.parallel.DistributedDataParallel",
        ignored=("message_size", "delay_allreduce", "num_allreduce_streams", "shared_param", "prof"),
        exact=True,
        why=_CUDA_ONLY,
    ),
)

_ADAM = (
    "apex.optimizers.FusedAdam(params, lr=0.001, bias_correction=True, betas=(0.9, 0.999), eps=1e-08, "
    "adam_w_mode=True, weight_decay=0.0, amsgrad=False, set_grad_none=True, capturable=False, "
    "master_weights=False)"
)
_FUSED_NORM = "apex.normalization.FusedLayerNorm / MixedFusedLayerNorm"
# Vendors' tables of drop-ins (replacements.toml) have these already; code for any device has no such table.
_APEX_FOR_ANY = (
    *(
        Entry(
            f"apex.normalization.{name}",
            "torch.nn.LayerNorm",
            _ANY,
            _FUSED_NORM,
            also=(f"apex.normalization.fused_layer_norm.{name}",),
            exact=True,
            why=_CUDA_ONLY,
        )
        for name in ("FusedLayerNorm", "MixedFusedLayerNorm")
    ),
    Entry(
        "apex.normalization.FusedRMSNorm(normalized_shape, eps=1e-05, elementwise_affine=True)",
        "torch.nn.RMSNorm({normalized_shape}, eps={eps}[[, elementwise_affine={elementwise_affine}]])",
        _ANY,
        "apex.normalization.FusedRMSNorm",
        also=("apex.normalization.fused_layer_norm.FusedRMSNorm",),
        exact=True,
        why=_CUDA_ONLY,
    ),
    *(
        Entry(
            _ADAM,
            f"torch.optim.{name}(..., weight_decay=0.0)",
            _ANY,
            "apex.optimizers.FusedAdam",
            when=(f"adam_w_mode={flag}",),
            takes=("params", "lr", "betas", "eps", "weight_decay", "amsgrad"),
            ignored=("set_grad_none", "capturable"),
            exact=True,
            why=_CUDA_ONLY,
        )
        for flag, name in (("True", "AdamW"), ("False", "Adam"))
    ),
    Entry(
        "apex.optimizers.FusedSGD(params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, "
        "wd_after_momentum=False, materialize_master_grads=True, set_grad_none=False)",
        "torch.optim.SGD(...)",
        _ANY,
        "apex.optimizers.FusedSGD",
        takes=("params", "lr", "momentum", "dampening", "weight_decay", "nesterov"),
        ignored=("materialize_master_grads", "set_grad_none"),
        exact=True,
        why=_CUDA_ONLY,
    ),
)

_SYNC = "apex.parallel.convert_syncbn_model(module, process_group=None, channel_last=False)"
_CONVERTED = "nn.SyncBatchNorm.convert_sync_batchnorm({module}[[, {process_group}]])"
# A method of a class can be called, but not imported, so that its name alone is no replacement.
_SYNC_BATCH_NORM = tuple(
    Entry(
        _SYNC,
        f"{package}.{_CONVERTED}",
        vendors,
        "apex.parallel.SyncBatchNorm / convert_syncbn_model",
        ignored=("channel_last",),
        exact=True,
        why=_CUDA_ONLY,
    )
    for package, vendors in (
        ("torch", ("any", "ascend", "cambricon", "moorethreads", "intel")),
        ("torch_sdaa", ("tecorigin",)),
    )
)

LIBRARIES = (*_FLASH_ATTENTION, *_OTHER_ATTENTION, *_APEX, *_APEX_FOR_ANY, *_SYNC_BATCH_NORM)

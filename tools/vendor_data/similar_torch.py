"""What stands in for functions of torch itself: optimizers that a vendor has fused, operators without a kernel."""

from __future__ import annotations

from dataclasses import replace

from vendor_data.similar import Entry, Pair

_FUSED: Pair = ("there is a fused form of this optimizer", "该优化器有融合形式")
_FUSED_REMARK: Pair = (
    "the parameters must be on the device when it is made; rounding differs from torch.optim",
    "创建时参数必须已在设备上；舍入与 torch.optim 不同",
)
_NPU_REMARK: Pair = (
    f"{_FUSED_REMARK[0]}; it joins gradients into one tensor, so a parameter that gets no gradient at the first step, "
    "or is added later, needs a look",
    f"{_FUSED_REMARK[1]}；它把梯度合并为一个张量，首步没有梯度或之后才加入的参数需要检查",
)
_SGD = (
    "torch.optim.SGD(params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, "
    "maximize=False, foreach=None, differentiable=False, fused=None)"
)
_ADAM = (
    "torch.optim.Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *, "
    "foreach=None, maximize=False, capturable=False, differentiable=False, fused=None)"
)
_ADAMW = (
    "torch.optim.AdamW(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0.01, amsgrad=False, *, "
    "maximize=False, foreach=None, capturable=False, differentiable=False, fused=None)"
)
_RMSPROP = (
    "torch.optim.RMSprop(params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False, "
    "capturable=False, foreach=None, maximize=False, differentiable=False)"
)
_ADADELTA = (
    "torch.optim.Adadelta(params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *, "
    "capturable=False, maximize=False, differentiable=False)"
)
_SGD_TAKES = ("params", "lr", "momentum", "dampening", "weight_decay", "nesterov")
_ADAM_TAKES = ("params", "lr", "betas", "eps", "weight_decay", "amsgrad")
_APEX_TAKES = ("params", "lr", "bias_correction", "betas", "eps", "adam_w_mode", "weight_decay")
_CHOOSES_KERNEL = ("foreach", "fused", "capturable")


def _optimizer(
    vendor: str, cuda: str, use: str, takes: tuple[str, ...], known: str = "", fact: str = ""
) -> Entry:
    return Entry(
        cuda,
        use,
        (vendor,),
        fact,
        known=known,
        takes=takes,
        ignored=_CHOOSES_KERNEL,
        exact=True,
        keeps_gradients=vendor == "ascend",  # it joins them into one tensor at the first step
        why=_FUSED,
        remark=_NPU_REMARK if vendor == "ascend" else _FUSED_REMARK,
    )


_NPU = "torch-npu 2.13.0 torch_npu/optim"
_MLU = "Cambricon/torch_mlu r2.4_develop api_support_lists/mlu_custom_operators.yaml"
_FUSED_ARGUMENT = "torch.optim.Adam/AdamW(fused=True)"

OPTIMIZERS = (
    _optimizer("ascend", _SGD, "torch_npu.optim.NpuFusedSGD(..., lr=0.001)", _SGD_TAKES, _NPU),
    _optimizer("ascend", _ADAM, "torch_npu.optim.NpuFusedAdam(...)", _ADAM_TAKES, _NPU),
    _optimizer("ascend", _ADAMW, "torch_npu.optim.NpuFusedAdamW(...)", _ADAM_TAKES, _NPU),
    _optimizer(
        "ascend",
        _RMSPROP,
        "torch_npu.optim.NpuFusedRMSprop(...)",
        ("params", "lr", "alpha", "eps", "weight_decay", "momentum", "centered"),
        _NPU,
    ),
    _optimizer(
        "ascend",
        _ADADELTA,
        "torch_npu.optim.NpuFusedAdadelta(...)",
        ("params", "lr", "rho", "eps", "weight_decay"),
        _NPU,
    ),
    _optimizer("cambricon", _SGD, "torch_mlu.optimizers.FusedSGD(..., lr=0.001)", _SGD_TAKES, _MLU),
    _optimizer(
        "cambricon", _ADAM, "torch_mlu.optimizers.FusedAdam(..., adam_w_mode=False)", _APEX_TAKES, _MLU
    ),
    _optimizer(
        "cambricon", _ADAMW, "torch_mlu.optimizers.FusedAdam(..., weight_decay=0.01)", _APEX_TAKES, _MLU
    ),
    _optimizer(
        "tecorigin", _SGD, "torch_sdaa.optim.FusedSGD(...)", _SGD_TAKES, fact="apex.optimizers.FusedSGD"
    ),
    _optimizer(
        "tecorigin", _ADAM, "torch_sdaa.optim.FusedAdam(...)", _ADAM_TAKES, fact="apex.optimizers.FusedAdam"
    ),
    _optimizer("moorethreads", _ADAM, "torch_musa.optim.FusedAdam(...)", _ADAM_TAKES, fact=_FUSED_ARGUMENT),
    _optimizer("moorethreads", _ADAMW, "torch_musa.optim.FusedAdamW(...)", _ADAM_TAKES, fact=_FUSED_ARGUMENT),
)

_F = "torch.nn.functional"
_HUBER = f"{_F}.huber_loss(input, target, reduction='mean', delta=1.0, weight=None)"
_LARGE: Pair = (
    "compares all pairs, so it takes memory of both sizes multiplied",
    "两两比较，内存为两者大小之积",
)
_SQUARES: Pair = ("overflows where the squares of the arguments do", "当参数的平方溢出时会溢出")
_SEARCH = (
    "torch.searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None)"
)
_SORTED = "({sorted_sequence}.unsqueeze(-2) < {input}.unsqueeze(-1)).sum(-1)"
_BUCKETIZE = "torch.bucketize(input, boundaries, *, out_int32=False, right=False)"
_STD_MEAN = "torch.std_mean(input, dim=None, *, unbiased=True, correction=1, keepdim=False)"


def _composed(cuda: str, use: str, missing: str, *when: str, remark: Pair = ("", "")) -> Entry:
    return Entry(cuda, use, missing=missing, when=when, exact=True, remark=remark)


_COMPOSED = (
    _composed(
        _HUBER, f"{_F}.smooth_l1_loss({{input}}, {{target}}[[, reduction={{reduction}}]])", "huber_loss"
    ),
    _composed(
        _HUBER,
        f"{_F}.smooth_l1_loss({{input}}, {{target}}[[, reduction={{reduction}}]], beta={{delta}}) * {{delta}}",
        "huber_loss",
    ),
    _composed(
        "torch.nn.HuberLoss(reduction='mean', delta=1.0)",
        "torch.nn.SmoothL1Loss([[reduction={reduction}]])",
        "huber_loss",
    ),
    _composed(
        "torch.fmax(input, other)",
        "torch.where(({input} >= {other}) | {other}.isnan(), {input}, {other})",
        "fmax",
    ),
    _composed(
        "torch.fmin(input, other)",
        "torch.where(({input} <= {other}) | {other}.isnan(), {input}, {other})",
        "fmin",
    ),
    _composed(
        "torch.heaviside(input, values)",
        "torch.where({input} == 0, {values}, ({input} > 0).to({input}.dtype))",
        "heaviside",
    ),
    _composed(
        "torch.hypot(input, other)",
        "torch.sqrt({input}.square() + {other}.square())",
        "hypot",
        remark=_SQUARES,
    ),
    _composed("torch.logit(input, eps=None)", "torch.log({input} / (1 - {input}))", "logit"),
    _composed(
        "torch.logit(input, eps=None)",
        "(lambda x: torch.log(x / (1 - x)))({input}.clamp({eps}, 1 - {eps}))",
        "logit",
    ),
    *(
        _composed(cuda, use.replace("<", sign), op, f"right={flag}", remark=_LARGE)
        for cuda, use, op in (
            (_BUCKETIZE, "({boundaries} < {input}.unsqueeze(-1)).sum(-1)", "bucketize"),
            (_SEARCH, _SORTED, "searchsorted"),
        )
        for flag, sign in (("False", "<"), ("True", "<="))
    ),
    *(
        replace(_composed(_STD_MEAN, "", "std_mean", f"dim={flag}"), kind="risk")
        for flag in ("True", "False")
    ),
    _composed(
        _STD_MEAN,
        "(torch.std({input}[[, dim={dim}]][[, unbiased={unbiased}]][[, correction={correction}]][[, keepdim={keepdim}]])"
        ", torch.mean({input}[[, dim={dim}]][[, keepdim={keepdim}]]))",
        "std_mean",
    ),
    Entry(
        f"{_F}.channel_shuffle(input, groups)",
        "{input}.unflatten(1, ({groups}, -1)).transpose(1, 2).flatten(1, 2)",
        missing="channel_shuffle",
        also=("torch.channel_shuffle",),
        exact=True,
    ),
    _composed(
        "torch.complex(real, imag)",
        "torch.view_as_complex(torch.stack(({real}, {imag}), -1))",
        "complex",
    ),
    _composed("torch.isposinf(input)", "({input} == float('inf'))", "isposinf"),
    _composed("torch.isneginf(input)", "({input} == -float('inf'))", "isneginf"),
    _composed(
        "torch.round(input, *, decimals=0)",
        "torch.round({input} * 10**{decimals}) / 10**{decimals}",
        "round.decimals|round.decimals_out",
        "decimals",
    ),
    *(
        _composed(
            f"torch.{name}_indices(row, col, offset=0, *, device=None)",
            f"torch.ones({{row}}, {{col}}, device={{device}}).{name}({{offset}}).nonzero().t().contiguous()",
            f"{name}_indices",
            "device",
        )
        for name in ("triu", "tril")
    ),
    _composed(
        f"{_F}.pdist(input, p=2.0)",
        'torch.cdist({input}, {input}, p={p}, compute_mode="donot_use_mm_for_euclid_dist")'
        "[torch.ones({input}.size(0), {input}.size(0), dtype=torch.bool, device={input}.device).triu(1)]",
        "_pdist_forward|pdist",
        remark=("computes all distances twice", "所有距离计算两次"),
    ),
)

# Functions on which nothing else is equal; what happens without the kernel is said at the call.
_ALONE = {
    "torch.mode(input, dim=-1, keepdim=False)": "mode",
    "torch.logcumsumexp(input, dim)": "_logcumsumexp",
    "torch.cummax(input, dim)": "_cummax_helper",
    "torch.cummin(input, dim)": "_cummin_helper",
    "torch.poisson(input, generator=None)": "poisson",
    "torch.lgamma(input)": "lgamma",
    "torch.digamma(input)": "digamma",
    "torch.copysign(input, other)": "copysign",
    "torch.sinc(input)": "sinc",
    "torch.nanmedian(input, dim=-1, keepdim=False)": "nanmedian",
    "torch.aminmax(input, *, dim=None, keepdim=False)": "aminmax|_aminmax",
    "torch.renorm(input, p, dim, maxnorm)": "renorm",
    "torch.gcd(input, other)": "gcd",
    "torch.matrix_exp(A)": "linalg_matrix_exp",
    "torch.linalg.matrix_exp(A)": "linalg_matrix_exp",
    "torch.linalg.eigh(A, UPLO='L')": "_linalg_eigh",
    "torch.linalg.solve(A, B, *, left=True)": "_linalg_solve_ex|linalg_solve",
    "torch.linalg.lstsq(A, B, rcond=None, *, driver=None)": "linalg_lstsq",
    "torch.linalg.cholesky(A, *, upper=False)": "linalg_cholesky_ex|linalg_cholesky|cholesky",
    f"{_F}.multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction='mean')": "multi_margin_loss",
    f"{_F}.fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False)": (
        "fractional_max_pool2d"
    ),
    f"{_F}.max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None)": "max_unpool2d",
}

OPERATORS = (*_COMPOSED, *(Entry(cuda, missing=op) for cuda, op in _ALONE.items()))

_INTERPOLATE = (
    f"{_F}.interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
    "recompute_scale_factor=None, antialias=False)"
)
_NO_SCALE: Pair = ("scale_factor is not supported there", "不支持 scale_factor")
_RNN = "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False"
_OUTSIDE: Pair = (
    "apply torch.nn.Dropout between layers of your own",
    "请在自己堆叠的各层之间使用 torch.nn.Dropout",
)
_GELU: Pair = (
    "computes the tanh approximation there unless torch_npu is told to use compatible kernels "
    "(TORCH_NPU_USE_COMPATIBLE_IMPL=1)",
    "除非设置 TORCH_NPU_USE_COMPATIBLE_IMPL=1 使用兼容算子，否则按 tanh 近似计算",
)

LIMITS = (
    Entry(
        _INTERPOLATE,
        f"{_F}.interpolate({{input}}, size=tuple(int(n * {{scale_factor}}) for n in {{input}}.shape[2:])"
        "[[, mode={mode}]][[, align_corners={align_corners}]][[, antialias={antialias}]])",
        ("ascend",),
        "torch.nn.functional.interpolate(scale_factor=..)",
        limit=f"{_F}.interpolate no_arg:scale_factor",
        when=("scale_factor:whole",),
        exact=True,
        why=_NO_SCALE,
    ),
    Entry(
        _INTERPOLATE,
        vendors=("ascend",),
        fact="torch.nn.functional.interpolate(scale_factor=..)",
        limit=f"{_F}.interpolate no_arg:scale_factor",
        when=("scale_factor",),
        why=_NO_SCALE,
        remark=(
            "pass size=; for a factor with a fraction the result differs a little from that of scale_factor",
            "请传 size=；倍数带小数时结果与 scale_factor 略有不同",
        ),
    ),
    Entry(
        _INTERPOLATE,
        vendors=("cambricon",),
        limit=f"{_F}.interpolate no_arg:antialias",
        when=("antialias",),
        why=("antialias is not supported there", "不支持 antialias"),
    ),
    Entry(
        "torchvision.ops.batched_nms(boxes, scores, idxs, iou_threshold)",
        "torchvision.ops.nms({boxes} + ({idxs}.to({boxes}) * (torch.cat(({boxes}.flatten(), {boxes}.new_zeros(1)))"
        ".max() + 1)).unsqueeze(1), {scores}, {iou_threshold})",
        ("cambricon",),
        "torchvision.ops.batched_nms",
        limit="torchvision.ops.batched_nms",
        exact=True,
        why=("batched_nms is not supported there", "不支持 batched_nms"),
        remark=("boxes of many classes lose digits to the offsets", "类别很多时，偏移会占用坐标的有效位"),
    ),
    *(
        Entry(
            f"torch.nn.{name}({_RNN}{rest})",
            vendors=("ascend",),
            limit=f"torch.nn.{name} no_arg:{argument}",
            when=(argument,),
            why=(f"{argument} of {name} is not supported there", f"不支持 {name} 的 {argument}"),
            remark=_OUTSIDE if argument == "dropout" else ("", ""),
        )
        for name, rest, argument in (
            ("LSTM", ", proj_size=0", "dropout"),
            ("LSTM", ", proj_size=0", "proj_size"),
            ("GRU", "", "dropout"),
        )
    ),
    Entry(
        "torch.nn.RNN(input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, "
        "dropout=0.0, bidirectional=False)",
        vendors=("ascend",),
        limit="torch.nn.RNN",
        why=("torch.nn.RNN is not supported there", "不支持 torch.nn.RNN"),
        remark=("use torch.nn.LSTM or torch.nn.GRU", "请改用 torch.nn.LSTM 或 torch.nn.GRU"),
    ),
    *(
        Entry(
            cuda,
            vendors=("ascend",),
            kind="risk",
            limit=f"{cuda.partition('(')[0]} approximate=tanh",
            when=("approximate='none'",),
            why=_GELU,
        )
        for cuda in (f"{_F}.gelu(input, approximate='none')", "torch.nn.GELU(approximate='none')")
    ),
)

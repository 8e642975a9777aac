"""What operators' names say: which do the same job, which only carry data around, which draw random numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

# What operators do -> a part of their names. The first that fits; "backward" is kept apart from forward.
_FAMILIES = {
    "dropout": ("dropout", "bernoulli"),
    "attention": ("attention",),
    "batch norm": ("batch_norm",),
    "layer norm": ("layer_norm",),
    "group norm": ("group_norm",),
    "rms norm": ("rms_norm",),
    "recurrent layer": ("rnn", "lstm", "gru"),
    "convolution": ("conv",),
    "log softmax": ("log_softmax",),
    "softmax": ("softmax",),
    "nll loss": ("nll_loss",),
    "ctc loss": ("ctc_loss",),
    "embedding": ("embedding",),
    "max pool": ("max_pool",),
    "avg pool": ("avg_pool",),
    "resize": ("upsample", "interpolate"),
    "grid sampler": ("grid_sampler",),
    "weight norm": ("weight_norm",),
    "optimizer step": ("adam", "sgd"),
}
_PRODUCTS = frozenset({"linear", "addmm", "mm", "bmm", "baddbmm", "matmul", "addmv", "mv", "addbmm"})
_SIZES_OF_RESULTS = ("new_", "empty", "zeros", "ones", "full", "rand", "scalar_tensor", "arange")
_RANDOM = (
    "rand", "normal", "uniform", "bernoulli", "native_dropout", "fused_dropout", "dropout", "feature_dropout", "multinomial",
    "exponential", "geometric", "cauchy", "log_normal", "poisson", "binomial", "rrelu", "standard_gamma",
    "sample_dirichlet", "alpha_dropout", "feature_alpha_dropout", "fill_mem_eff_dropout_mask",
)  # fmt: skip
_DERIVED = ("_loss", "_grad")  # poisson_nll_loss draws nothing
# They move, copy, cast or look at data, or make room for it: an extra one changes nothing that is computed.
_PLUMBING = frozenset(
    {
        "copy_", "_to_copy", "to", "clone", "contiguous", "detach", "detach_", "alias", "view", "_unsafe_view", "reshape",
        "_reshape_alias", "as_strided", "expand", "expand_as", "permute", "transpose", "t", "numpy_T", "squeeze",
        "unsqueeze", "select", "slice", "split", "split_with_sizes", "chunk", "unbind", "narrow", "movedim", "view_as",
        "view_as_real", "view_as_complex", "lift_fresh", "lift_fresh_copy", "lift", "pin_memory", "_pin_memory", "is_pinned",
        "_copy_from", "_copy_from_and_resize", "_local_scalar_dense", "item", "record_stream", "resize_", "set_", "diagonal",
        "unfold", "ravel", "flatten", "unflatten", "_conj", "resolve_conj", "resolve_neg", "is_set_to", "data", "type_as",
        "_fused_sdp_choice", "_foreach_copy_", "zero_", "fill_", "ones_like", "zeros_like",
        "full_like", "_efficientzerotensor", "float", "half", "double", "bfloat16", "int", "long", "bool", "type", "cpu",
        "cuda", "npu", "getitem", "tolist", "numpy", "_has_compatible_shallow_copy_type", "equal", "is_same_size",
    }
)  # fmt: skip


@cache
def base_name(operator: str) -> str:
    """Without library, overload and what a library's own operators are prefixed with: rms_norm for lib::lib_rms_norm."""
    library, _, rest = operator.rpartition("::")
    name = rest.partition(".")[0]
    if library and library != "aten":
        name = name.removeprefix(f"{library}_")
    return name


def without_overload(operator: str) -> str:
    """The name without its overload: aten::add for aten::add.Tensor."""
    return operator.partition(".")[0]


_OVER_LISTS = ("_foreach_", "_fused_", "_amp_foreach_")  # they do the same to each element of their lists


def works_on_lists(operator: str) -> bool:
    """Whether it does the same to each tensor of its lists."""
    return _unqualified(operator).startswith(_OVER_LISTS)


def of_one_element(operator: str) -> str:
    """add for aten::_foreach_add_.List: what it does to a tensor, in place or not."""
    name = _unqualified(operator)
    for prefix in _OVER_LISTS:
        name = name.removeprefix(prefix)
    return name.rstrip("_")


def _unqualified(operator: str) -> str:
    return operator.rpartition("::")[2].partition(".")[0]


@cache
def is_plumbing(operator: str) -> bool:
    """Whether an extra call of it on one side is no news."""
    name = base_name(operator)
    if name.endswith("format_cast") or name.startswith(_SIZES_OF_RESULTS):
        return True
    return name in _PLUMBING


@cache
def is_random(operator: str) -> bool:
    """Whether it draws numbers, which no other device draws alike."""
    name = base_name(operator).strip("_")
    return name.startswith(_RANDOM) and not name.endswith(_DERIVED) and "backward" not in name


@cache
def family(operator: str) -> str:
    """What an operator does; two with the same answer may stand for each other."""
    name = base_name(operator)
    name = CALLED_ELSEWHERE.get(name, CALLED_BEFORE.get(name, name)).partition(".")[0]
    equivalents = EQUIVALENTS.get(name)
    if equivalents:
        name = equivalents[0].partition(".")[0] if name not in equivalents else name
    plain = name.strip("_")
    if plain in _PRODUCTS:
        return "matrix product"
    backward = " backward" if "backward" in name else ""
    for what, parts in _FAMILIES.items():
        if any(part in plain for part in parts):
            return what + backward
    if name in ("_copy_from", "_copy_from_and_resize", "_to_copy", "copy_"):
        return "copy"
    return plain.removeprefix("foreach_").removesuffix("_out")


@cache
def likeness(one: str, other: str) -> float:
    """How much of two operators' names is the same, from 0 to 1; backward is never like forward."""
    first, second = _words(one), _words(other)
    if ("backward" in first) != ("backward" in second):
        return 0.0
    shared = len((first & second) - {"backward"})
    return shared / max(1, min(len(first - {"backward"}), len(second - {"backward"})))


def _words(operator: str) -> frozenset[str]:
    names = {base_name(operator), family(operator).replace(" ", "_")}
    words = {word for name in names for word in re.split(r"_+|(?<=[a-z])(?=[A-Z])", name)}
    return frozenset(word.lower() for word in words if len(word) > 1 or word.isdigit()) - _EMPTY_WORDS


_EMPTY_WORDS = frozenset({"fused", "fusion", "fast", "native", "forward", "grad", "v2", "v3", "impl"})


# Operators that go by another name on devices than on the CPU. A vendor's table lists the device's name; the simulated
# device, and a run on the CPU, meet the CPU's.

_CONVOLUTION = ("convolution", "convolution_overrideable", "_convolution")
_CONVOLUTIONS = (
    *_CONVOLUTION, "_slow_conv2d_forward", "slow_conv_transpose2d", "slow_conv_transpose3d", "slow_conv3d_forward",
    "slow_conv_dilated2d", "slow_conv_dilated3d",
)  # fmt: skip
_CONVOLUTION_BACKWARD = ("convolution_backward", "convolution_backward_overrideable")
_COPY = ("copy_", "_copy_from", "_copy_from_and_resize")
_LSTM = ("lstm.input", "lstm.data", "_thnn_fused_lstm_cell", "_cudnn_rnn")
_GRU = ("gru.input", "_thnn_fused_gru_cell", "_cudnn_rnn")
_CTC = ("ctc_loss.Tensor", "ctc_loss.IntList")
_BATCH_NORM = ("native_batch_norm", "_batch_norm_with_update")
_BATCH_NORM_BACKWARD = ("native_batch_norm_backward", "batch_norm_backward")

# what is met (without overload: every overload) -> any of these in the table stands for it
EQUIVALENTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_CONVOLUTIONS, _CONVOLUTION),
    "convolution_backward": _CONVOLUTION_BACKWARD,
    "convolution_backward_overrideable": _CONVOLUTION_BACKWARD,
    "_slow_conv2d_backward": _CONVOLUTION_BACKWARD,
    "copy_": _COPY,
    "_foreach_copy_": _COPY,
    "native_dropout": ("native_dropout", "_fused_dropout", "dropout"),
    "native_dropout_backward": ("native_dropout_backward", "_masked_scale"),
    "lstm": _LSTM,
    "lstm_cell": _LSTM,
    "gru": _GRU,
    "gru_cell": _GRU,
    "isneginf": ("isneginf.out", "scaled_dot_product_attention"),
    "_ctc_loss": ("_ctc_loss", "_ctc_loss.Tensor", *_CTC),
    "_ctc_loss_backward": ("_ctc_loss_backward", "_ctc_loss_backward.Tensor", *_CTC),
    "_weight_norm_interface": ("_weight_norm_interface", "_weight_norm"),
    "_weight_norm_interface_backward": ("_weight_norm_interface_backward", "_weight_norm"),
    "native_batch_norm": _BATCH_NORM,
    "_native_batch_norm_legit": _BATCH_NORM,
    "_batch_norm_with_update": _BATCH_NORM,
    "native_batch_norm_backward": _BATCH_NORM_BACKWARD,
    "batch_norm_backward": _BATCH_NORM_BACKWARD,
    "_linalg_det": ("_linalg_det", "linalg_det"),
    "_linalg_slogdet": ("_linalg_slogdet", "linalg_slogdet", "slogdet"),
    "linalg_cholesky_ex": ("linalg_cholesky_ex.L", "linalg_cholesky"),
    "linalg_inv_ex": ("linalg_inv_ex.inverse", "inverse"),
    "_pdist_backward": ("_pdist_backward", "pdist"),
    "multilabel_margin_loss_forward": ("multilabel_margin_loss_forward", "multilabel_margin_loss"),
    "multilabel_margin_loss_backward": ("multilabel_margin_loss_backward", "multilabel_margin_loss"),
    "vdot": ("vdot", "dot"),
    "aminmax": ("aminmax.out", "_aminmax", "one_hot"),
}

# Plumbing and views that no adapter can be without, and attention: every adapter has it, at least as a formula.
ALWAYS_THERE = (
    "empty.*", "empty_*", "as_strided", "view", "view.*", "view_as_real", "view_as_complex", "_reshape_alias",
    "unfold", "set_*", "resize_", "resize_as_", "_resize_output_", "_local_scalar_dense", "record_stream",
    "is_pinned", "_pin_memory", "_has_compatible_shallow_copy_type", "_efficientzerotensor", "is_set_to", "equal",
    "copy_", "_copy_from*", "_to_copy", "_scaled_dot_product_*", "_fused_sdp_choice",
)  # fmt: skip

# What PyTorch calls on other devices -> names that only the CPU's and CUDA's own kernels go by. With the overload
# .Tensor, ctc_loss is the CPU's too, but for a run that a dispatch mode watches.
_CALLED_ELSEWHERE = {
    "convolution": (
        "mkldnn_convolution", "_nnpack_spatial_convolution", "thnn_conv2d", "_conv_depthwise2d", "conv_depthwise3d",
        "cudnn_convolution", "cudnn_convolution_transpose", "miopen_convolution", "miopen_convolution_transpose",
        "miopen_depthwise_convolution",
    ),
    "lstm.input": (
        "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward",
        "_cudnn_rnn_flatten_weight", "_cudnn_init_dropout_state", "_thnn_fused_lstm_cell",
        "_thnn_fused_lstm_cell_backward_impl",
    ),
    "gru.input": ("_thnn_fused_gru_cell", "_thnn_fused_gru_cell_backward"),
    "native_batch_norm": ("cudnn_batch_norm", "miopen_batch_norm"),
    "native_batch_norm_backward": ("cudnn_batch_norm_backward", "miopen_batch_norm_backward"),
    "_ctc_loss": ("_cudnn_ctc_loss", "_ctc_loss.Tensor"),
    "_ctc_loss_backward": ("_ctc_loss_backward.Tensor",),
    "grid_sampler_2d": ("cudnn_grid_sampler", "_grid_sampler_2d_cpu_fallback"),
    "grid_sampler_2d_backward": ("cudnn_grid_sampler_backward", "_grid_sampler_2d_cpu_fallback_backward"),
    "affine_grid_generator": ("cudnn_affine_grid_generator",),
    "_scaled_dot_product_flash_attention": ("_flash_attention_forward",),
    "_scaled_dot_product_flash_attention_backward": ("_flash_attention_backward",),
    "_scaled_dot_product_efficient_attention": ("_efficient_attention_forward",),
    "_scaled_dot_product_efficient_attention_backward": ("_efficient_attention_backward",),
    "native_dropout": ("_fused_dropout",),
    "native_dropout_backward": ("_masked_scale",),
}  # fmt: skip
CALLED_ELSEWHERE: Mapping[str, str] = {
    name: meant for meant, names in _CALLED_ELSEWHERE.items() for name in names
}

# An operator's name today -> what traces of old releases call it.
_CALLED_BEFORE = {
    "convolution_backward": (
        "cudnn_convolution_backward", "cudnn_convolution_transpose_backward", "miopen_convolution_backward",
        "miopen_convolution_transpose_backward", "miopen_depthwise_convolution_backward",
        "mkldnn_convolution_backward", "thnn_conv2d_backward", "thnn_conv_depthwise2d_backward",
    ),
    "convolution": (
        "thnn_conv2d_forward", "thnn_conv_depthwise2d", "thnn_conv_depthwise2d_forward",
    ),
}  # fmt: skip
CALLED_BEFORE: Mapping[str, str] = {name: meant for meant, names in _CALLED_BEFORE.items() for name in names}

# Their formulas look at the device and choose something of its own: what they do on the CPU says nothing.
CHOOSE_BY_DEVICE = frozenset({"aten::_convolution", "aten::convolution_backward", "aten::copy_"})

# Operators that a device must serve as one, although PyTorch has them as composite: what the CPU does inside of them
# is a choice among its own kernels.
TAKEN_WHOLE = (
    "convolution", "_convolution", "convolution_backward", "copy_", "lstm.input", "lstm.data", "lstm_cell",
    "gru.input", "gru.data", "gru_cell", "rnn_tanh.input", "rnn_tanh.data", "rnn_relu.input", "rnn_relu.data",
)  # fmt: skip
# Of these the ones that PyTorch makes on devices with a kernel that only they use: without it they are missing.
NEED_OWN_KERNEL = (
    "convolution", "_convolution", "convolution_backward", "lstm.*", "lstm_cell", "gru.*", "gru_cell",
)  # fmt: skip

# Reports of what works name functions of Python; the operators without which such a function could not work.
PROVEN_BY: Mapping[str, tuple[str, ...]] = {
    "convolution": ("conv2d",),
    "_convolution": ("conv2d",),
    "addmm": ("linear",),
    "native_batch_norm": ("batch_norm",),
    "native_layer_norm": ("layer_norm",),
    "_softmax": ("softmax",),
    "_log_softmax": ("cross_entropy",),
    "nll_loss_forward": ("cross_entropy",),
    "max_pool2d_with_indices": ("max_pool2d",),
    "_adaptive_avg_pool2d": ("adaptive_avg_pool2d",),
    "_linalg_svd": ("svd",),
    "_scaled_dot_product_flash_attention_for_cpu": ("scaled_dot_product_attention",),
    "_scaled_dot_product_flash_attention": ("scaled_dot_product_attention",),
    "_scaled_dot_product_efficient_attention": ("scaled_dot_product_attention",),
    "_scaled_dot_product_attention_math": ("scaled_dot_product_attention",),
}

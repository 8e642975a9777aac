"""Operators that go by another name on devices than on the CPU. A vendor's table lists the device's name; the
simulated device, and a run on the CPU, meet the CPU's."""

from __future__ import annotations

from collections.abc import Mapping

_CONVOLUTION = ("convolution", "convolution_overrideable", "_convolution")
_CONVOLUTION_BACKWARD = ("convolution_backward", "convolution_backward_overrideable")
_COPY = ("copy_", "_copy_from", "_copy_from_and_resize")
_LSTM = ("lstm.input", "lstm.data", "_thnn_fused_lstm_cell", "_cudnn_rnn")
_GRU = ("gru.input", "_thnn_fused_gru_cell", "_cudnn_rnn")
_CTC = ("ctc_loss.Tensor", "ctc_loss.IntList")
_BATCH_NORM = ("native_batch_norm", "_batch_norm_with_update")
_BATCH_NORM_BACKWARD = ("native_batch_norm_backward", "batch_norm_backward")

# what is met (without overload: every overload) -> any of these in the table stands for it
EQUIVALENTS: Mapping[str, tuple[str, ...]] = {
    "convolution": _CONVOLUTION,
    "_convolution": _CONVOLUTION,
    "convolution_overrideable": _CONVOLUTION,
    "_slow_conv2d_forward": _CONVOLUTION,
    "slow_conv_transpose2d": _CONVOLUTION,
    "slow_conv_transpose3d": _CONVOLUTION,
    "slow_conv3d_forward": _CONVOLUTION,
    "slow_conv_dilated2d": _CONVOLUTION,
    "slow_conv_dilated3d": _CONVOLUTION,
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
    "empty.*",
    "empty_*",
    "as_strided",
    "view",
    "view.*",
    "view_as_real",
    "view_as_complex",
    "_reshape_alias",
    "unfold",
    "set_*",
    "resize_",
    "resize_as_",
    "_resize_output_",
    "_local_scalar_dense",
    "record_stream",
    "is_pinned",
    "_pin_memory",
    "_has_compatible_shallow_copy_type",
    "_efficientzerotensor",
    "is_set_to",
    "equal",
    "copy_",
    "_copy_from*",
    "_to_copy",
    "_scaled_dot_product_*",
    "_fused_sdp_choice",
)

# Names that only the CPU's and CUDA's own kernels go by -> what PyTorch calls on another device instead.
CALLED_ELSEWHERE: Mapping[str, str] = {
    "mkldnn_convolution": "convolution",
    "_nnpack_spatial_convolution": "convolution",
    "thnn_conv2d": "convolution",
    "_conv_depthwise2d": "convolution",
    "conv_depthwise3d": "convolution",
    "cudnn_convolution": "convolution",
    "cudnn_convolution_transpose": "convolution",
    "miopen_convolution": "convolution",
    "miopen_convolution_transpose": "convolution",
    "miopen_depthwise_convolution": "convolution",
    "mkldnn_rnn_layer": "lstm.input",
    "mkldnn_rnn_layer_backward": "lstm.input",
    "_cudnn_rnn": "lstm.input",
    "_cudnn_rnn_backward": "lstm.input",
    "_cudnn_rnn_flatten_weight": "lstm.input",
    "_cudnn_init_dropout_state": "lstm.input",
    "_thnn_fused_lstm_cell": "lstm.input",
    "_thnn_fused_lstm_cell_backward_impl": "lstm.input",
    "_thnn_fused_gru_cell": "gru.input",
    "_thnn_fused_gru_cell_backward": "gru.input",
    "cudnn_batch_norm": "native_batch_norm",
    "cudnn_batch_norm_backward": "native_batch_norm_backward",
    "miopen_batch_norm": "native_batch_norm",
    "miopen_batch_norm_backward": "native_batch_norm_backward",
    "_cudnn_ctc_loss": "_ctc_loss",
    "_ctc_loss.Tensor": "_ctc_loss",  # on the CPU too, but for a run that a dispatch mode watches
    "_ctc_loss_backward.Tensor": "_ctc_loss_backward",
    "cudnn_grid_sampler": "grid_sampler_2d",
    "cudnn_grid_sampler_backward": "grid_sampler_2d_backward",
    "cudnn_affine_grid_generator": "affine_grid_generator",
    "_grid_sampler_2d_cpu_fallback": "grid_sampler_2d",
    "_grid_sampler_2d_cpu_fallback_backward": "grid_sampler_2d_backward",
    "_flash_attention_forward": "_scaled_dot_product_flash_attention",
    "_flash_attention_backward": "_scaled_dot_product_flash_attention_backward",
    "_efficient_attention_forward": "_scaled_dot_product_efficient_attention",
    "_efficient_attention_backward": "_scaled_dot_product_efficient_attention_backward",
    "_fused_dropout": "native_dropout",
    "_masked_scale": "native_dropout_backward",
}

# What traces of old releases call by names that PyTorch has no more -> its name today.
CALLED_BEFORE: Mapping[str, str] = {
    "cudnn_convolution_backward": "convolution_backward",
    "cudnn_convolution_transpose_backward": "convolution_backward",
    "miopen_convolution_backward": "convolution_backward",
    "miopen_convolution_transpose_backward": "convolution_backward",
    "miopen_depthwise_convolution_backward": "convolution_backward",
    "mkldnn_convolution_backward": "convolution_backward",
    "thnn_conv2d_forward": "convolution",
    "thnn_conv2d_backward": "convolution_backward",
    "thnn_conv_depthwise2d": "convolution",
    "thnn_conv_depthwise2d_forward": "convolution",
    "thnn_conv_depthwise2d_backward": "convolution_backward",
}

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

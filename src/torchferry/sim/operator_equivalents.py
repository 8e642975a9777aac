"""Operators that go by another name on devices than on the CPU. A vendor's table lists the device's name; the
simulated device meets the CPU's."""

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

# what the simulator meets (without overload: every overload) -> any of these in the table stands for it
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
    "_copy_from*",
    "_to_copy",
    "_scaled_dot_product_*",
    "_fused_sdp_choice",
)

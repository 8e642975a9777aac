"""The faults that are put into the simulated device, one at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import mistakes as m
from .kernels import Kernel, Kernels

NAN = float("nan")
half, brain = torch.float16, torch.bfloat16


@dataclass(frozen=True)
class Fault:
    """A kernel with a mistake, in one call of an operator."""

    name: str
    training: str
    operator: str  # without aten::
    kernel: Kernel
    nth: int = 1
    output: int = 0
    quick: bool = False  # one of those that are tried each time

    @property
    def is_bf16(self) -> bool:
        return self.training.endswith("bf16")

    def kernels(self) -> Kernels:
        return Kernels(self.operator, self.kernel, self.nth, self.output)


_IMAGES = [
    Fault("tail of a convolution is zero", "Images", "convolution", m.tail(7), 2, quick=True),
    Fault("bias of a convolution is forgotten", "Images", "convolution", lambda made: made.result - made.args[2].view(-1, 1, 1)),
    Fault("one channel of a convolution", "Images", "convolution", m.channel(5, 1.001), 2),
    Fault("convolution is a column off", "Images", "convolution", m.shifted(3), quick=True),
    Fault("convolution adds up in half precision", "Images", "convolution", m.convolution_in(half), 2, quick=True),
    Fault("convolution: a tile is zero", "Images", "convolution", m.tile(2, 2), 3),
    Fault("gradient of weights lacks an image", "Images", "convolution_backward", m.without_last_image, 2, 1),
    Fault("gradient of a bias lacks rows", "Images", "convolution_backward", m.tail(3), 1, 2),
    Fault("gradient of a convolution's input has the wrong sign", "Images", "convolution_backward", m.negated, 2, 0),
    Fault("running variance from n", "Images", "native_batch_norm", m.biased_variance, 2, 4, quick=True),
    Fault("running mean is not updated", "Images", "native_batch_norm", lambda made: made.args[3], 1, 3),
    Fault("epsilon of a batch norm", "Images", "native_batch_norm", m.with_argument(7, 1e-3), 2),
    Fault("gradient of a batch norm's input, scaled", "Images", "native_batch_norm_backward", m.scaled(1.0002), 1),
    Fault("gradient of a batch norm's weight is stale", "Images", "native_batch_norm_backward", m.scaled(0.0), 2, 1),
    Fault("pooling picks the second", "Images", "max_pool2d_with_indices", m.second_largest, quick=True),
    Fault("gradient of a pooling is shifted", "Images", "max_pool2d_with_indices_backward", m.shifted(3)),
    Fault("average over one element too many", "Images", "avg_pool2d", m.scaled(4 / 5)),
    Fault("dropout does not scale", "Images", "div_.Scalar", m.unwritten),
    Fault("wrong slope", "Images", "leaky_relu", m.with_argument(1, 0.1001)),
    Fault("nan in a logarithm", "Images", "_log_softmax", m.at(13, NAN), quick=True),
    Fault("loss over one example less", "Images", "nll_loss_forward", m.scaled(8 / 7)),
    Fault("momentum is ignored", "Images", "_foreach_mul_.Scalar", m.unwritten, 1, 4),
    Fault("weight decay is ignored", "Images", "_foreach_add.List", lambda made: made.args[0][made.output], 1, 2, quick=True),
    Fault("parameter is not updated", "Images", "_foreach_add_.List", m.unwritten, 2, 6),
    Fault("rounds a sum towards zero", "Images", "_foreach_add_.List", m.truncated, 1, 4),
]  # fmt: skip

_WORDS = [
    Fault("attention with another scale", "Words", "_scaled_dot_product_flash_attention_for_cpu", m.with_option(scale=0.29), quick=True),
    Fault("attention: last head", "Words", "_scaled_dot_product_flash_attention_for_cpu", m.channel(3, 1.0005), 2),
    Fault("gradient of keys is that of queries", "Words", "_scaled_dot_product_flash_attention_for_cpu_backward",
          lambda made: made.chosen(made.func(*made.args, **made.kwargs)[:1] * 3, made.args), 1, 1),
    Fault("epsilon of a layer norm", "Words", "native_layer_norm", m.with_argument(4, 1e-6), 3, quick=True),
    Fault("layer norm is stale", "Words", "native_layer_norm", m.stale, 2),
    Fault("layer norm with statistics in few digits", "Words", "native_layer_norm", m.statistics_in(brain), 4),
    Fault("gradient of a layer norm's weight lacks a row", "Words", "native_layer_norm_backward",
          lambda made: made.again(torch.float64, made.args[0][:-1], made.args[1][:-1], made.args[2], made.args[3][:-1], made.args[4][:-1]), 2, 1),
    Fault("gelu by tanh", "Words", "gelu", m.with_option(approximate="tanh"), 2, quick=True),
    Fault("gradient of a gelu: every eighth", "Words", "gelu_backward", m.stripe(8, 1.01)),
    Fault("word after the right one", "Words", "embedding", m.shifted(1)),
    Fault("gradient of words counts each once", "Words", "embedding_dense_backward", m.embedding_without_duplicates, quick=True),
    Fault("product ends early", "Words", "mm", m.without_last_terms(1), 3, quick=True),
    Fault("product in half precision", "Words", "mm", m.added_up_in(half), 5),
    Fault("product in bfloat16", "Words", "mm", m.added_up_in(brain), 12),
    Fault("sum in bfloat16", "Words", "sum.dim_IntList", m.sum_in(brain), 4),
    Fault("second moment is not updated", "Words", "_foreach_addcmul_.Scalar", m.unwritten, 1, 9, quick=True),
    Fault("first moment moves too far", "Words", "_foreach_lerp_.Scalar", m.scaled(1.0001), 1, 3),
    Fault("update of one parameter too large", "Words", "_foreach_addcdiv_.ScalarList", m.scaled(1.00001), 1, 4),
    Fault("norm lacks a block", "Words", "_foreach_norm.Scalar", m.scaled(0.99), 1, 7),
    Fault("clipping by a stale factor", "Words", "_foreach_mul_.Tensor", m.scaled(1.25), 1, 12),
    Fault("residual is added twice", "Words", "add.Tensor", lambda made: made.result + made.args[0], 3),
    Fault("rounds a residual towards zero", "Words", "add.Tensor", m.truncated, 5),
]  # fmt: skip

_SEQUENCES = [
    Fault("gate from a table", "Sequences", "sigmoid_", m.gates_by_table(1 / 64), 4, quick=True),
    Fault("tanh saturates early", "Sequences", "tanh", m.saturated(0.6), 4),
    Fault("state of the step before", "Sequences", "tanh", m.stale, 3),
    Fault("gradient of a tanh from a wrong formula", "Sequences", "tanh_backward", m.derivative_of_tanh, 5),
    Fault("gates without the recurrent part", "Sequences", "add_.Tensor", m.unwritten, 3),
    Fault("softmax along the wrong dimension in the tail", "Sequences", "_softmax", m.softmax_of_tail, quick=True),
    Fault("product is transposed", "Sequences", "bmm", m.transposed, 1, quick=True),
    Fault("product of a batch: last matrix", "Sequences", "bmm", m.channel(7, 0.999, 0), 4),
    Fault("mean instead of sum", "Sequences", "mse_loss", m.scaled(1 / 960)),
    Fault("deviation from n", "Sequences", "std.correction", m.scaled((959 / 960) ** 0.5), quick=True),
    Fault("bias added twice", "Sequences", "addmm", lambda made: made.result + made.args[0], 4),
    Fault("tiny offset", "Sequences", "mul.Tensor", m.offset(1e-5), 7),
    Fault("cell state from truncated products", "Sequences", "mul.Tensor", m.truncated, 2),
    Fault("gradients exchanged", "Sequences", "cat", m.shifted(1), 1),
    Fault("gradient of a silu at zero", "Sequences", "silu_backward", m.at(3, 0.0)),
    Fault("root of a moment in half precision", "Sequences", "_foreach_sqrt", lambda made: made.result.to(half), 1, 2),
]  # fmt: skip

_BF16 = [
    Fault("tail of a convolution is zero", "Images bf16", "convolution", m.tail(5), 2),
    Fault("convolution adds up in bfloat16", "Images bf16", "convolution", m.convolution_in(brain), 2, quick=True),
    Fault("convolution rounds towards zero", "Images bf16", "convolution", m.truncated, 1),
    Fault("bias of a convolution is forgotten", "Images bf16", "convolution", lambda made: made.result - made.args[2].view(-1, 1, 1)),
    Fault("gradient of weights lacks an image", "Images bf16", "convolution_backward", m.without_last_image, 2, 1),
    Fault("epsilon of a batch norm", "Images bf16", "native_batch_norm", m.with_argument(7, 1e-3), 2),
    Fault("pooling picks the second", "Images bf16", "max_pool2d_with_indices", m.second_largest),
    Fault("average rounds towards zero", "Images bf16", "avg_pool2d", m.truncated),
    Fault("running variance from n", "Images bf16", "native_batch_norm", m.biased_variance, 1, 4),
    Fault("attention with another scale", "Words bf16", "_scaled_dot_product_flash_attention_for_cpu", m.with_option(scale=0.29)),
    Fault("epsilon of a layer norm", "Words bf16", "native_layer_norm", m.with_argument(4, 1e-2), 3),
    Fault("layer norm rounds towards zero", "Words bf16", "native_layer_norm", m.truncated, 2),
    Fault("layer norm with statistics in few digits", "Words bf16", "native_layer_norm", m.statistics_in(brain), 4),
    Fault("gelu by tanh", "Words bf16", "gelu", m.with_option(approximate="tanh"), 1),
    Fault("gelu rounds towards zero", "Words bf16", "gelu", m.truncated, 2),
    Fault("product in bfloat16", "Words bf16", "mm", m.added_up_in(brain), 5, quick=True),
    Fault("product ends early", "Words bf16", "mm", m.without_last_terms(1), 3),
    Fault("product rounds towards zero", "Words bf16", "addmm", m.truncated, 2),
    Fault("sum in bfloat16", "Words bf16", "sum.dim_IntList", m.sum_in(brain), 4),
    Fault("rounds a residual towards zero", "Words bf16", "add.Tensor", m.truncated, 5, quick=True),
    Fault("one percent off in a stripe", "Words bf16", "gelu_backward", m.stripe(8, 1.02)),
    Fault("gradient of words counts each once", "Words bf16", "embedding_dense_backward", m.embedding_without_duplicates),
    Fault("second moment is not updated", "Words bf16", "_foreach_addcmul_.Scalar", m.unwritten, 1, 9),
    Fault("two thousandths too large", "Words bf16", "add.Tensor", m.scaled(1.003), 2),
    Fault("layer norm is stale", "Words bf16", "native_layer_norm", m.stale, 2),
    Fault("softmax of rounded weights", "Sequences bf16", "_softmax", m.softmax_of_tail),
    Fault("gate from a table", "Sequences bf16", "sigmoid_", m.gates_by_table(1 / 2), 4),
    Fault("gate rounds towards zero", "Sequences bf16", "sigmoid_", m.truncated, 2),
    Fault("product is transposed", "Sequences bf16", "bmm", m.transposed, 1),
    Fault("bias added twice", "Sequences bf16", "addmm", lambda made: made.result + made.args[0], 4, quick=True),
    Fault("cast rounds towards zero", "Sequences bf16", "_to_copy", m.truncated, 9),
    Fault("cell state rounds towards zero", "Sequences bf16", "mul.Tensor", m.truncated, 2),
    Fault("gradients exchanged", "Sequences bf16", "cat", m.shifted(1), 1),
]  # fmt: skip

_OTHERS = [
    Fault("sum in place is stale", "Others", "add_.Tensor", m.unwritten),
    Fault("dropout keeps another share", "Others", "bernoulli_.float", m.too_few_kept(0.45)),
    Fault("dropout scales too much", "Others", "div_.Scalar", m.scaled(1.02)),
    Fault("average at the border", "Others", "avg_pool2d", m.pooled_without_padding),
    Fault("maximum at the border", "Others", "max_pool2d_with_indices", m.pooled_with_zeros),
    Fault("nan from outside of the picture", "Others", "convolution", m.nan_in_padding),
    Fault("gradients of weight and bias exchanged", "Others", "native_layer_norm_backward", m.exchanged(2), 1, 1),
    Fault("index of a word wraps", "Others", "embedding", m.wrapped),
    Fault("derivative of a softmax: one head", "Others", "_softmax_backward_data", m.one_head),
    Fault("mask of a large number", "Others", "masked_fill.Scalar", m.masked_with(-1e4)),
    Fault("logarithm of a sum in half precision", "Others", "_log_softmax", m.log_softmax_in_half),
    Fault("softmax without the largest", "Others", "_softmax", m.softmax_without_largest),
    Fault("a word that does not count has a gradient", "Others", "embedding_dense_backward", m.gradient_of_padding),
    Fault("targets that do not count do", "Others", "nll_loss_forward", m.ignored_targets_count),
    Fault("AdamW is a step ahead", "Others", "_fused_adamw_", m.step_ahead),
    Fault("running variance from n", "Others", "native_batch_norm", m.biased_variance, 1, 4),
    Fault("factor has the digits of bfloat16", "Others", "mul.Tensor", m.scaled(1.0 + 2.0**-9), 1),
    Fault("running sum in bfloat16", "Others", "cumsum", m.cumsum_in(brain)),
    Fault("rows for one place are not added", "Others", "index_add", m.index_add_without_duplicates),
    Fault("resized by its corners", "Others", "upsample_bilinear2d", m.resized_by_corners),
    Fault("last of the largest", "Others", "topk", m.last_is_first, 1, 1),
    Fault("order of a sort is rolled", "Others", "sort", m.shifted(0), 1, 1),
    Fault("random numbers end early", "Others", "uniform_", m.scaled(0.97), quick=True),
    Fault("unscaled twice", "Others", "_amp_foreach_non_finite_check_and_unscale_", m.scaled(1 / 1024), 1, 1, quick=True),
    Fault("overflow is told where there is none", "Others", "_amp_foreach_non_finite_check_and_unscale_", m.offset(1.0), 1, 9),
    Fault("copy is not waited for", "Others", "convolution", m.from_late_copy),
    Fault("epsilon outside of the root", "Others", "native_layer_norm", m.layer_norm_outside),
    Fault("one product of many is stale", "Words", "mm", m.tail(200), 9),
    Fault("sum ends at 2^24", "Large", "sum", lambda made: torch.tensor(2.0**24)),
    Fault("rows beyond 65535 are not written", "Large", "native_layer_norm", m.rows_unwritten(65536)),
    Fault("one element of two million", "Large", "mul.Tensor", m.one_of_many),
    Fault("average at the border", "Others bf16", "avg_pool2d", m.pooled_without_padding),
    Fault("maximum at the border", "Others bf16", "max_pool2d_with_indices", m.pooled_with_zeros),
    Fault("index of a word wraps", "Others bf16", "embedding", m.wrapped),
    Fault("derivative of a softmax: one head", "Others bf16", "_softmax_backward_data", m.one_head),
    Fault("softmax without the largest", "Others bf16", "_softmax", m.softmax_without_largest),
    Fault("a word that does not count has a gradient", "Others bf16", "embedding_dense_backward", m.gradient_of_padding),
    Fault("AdamW is a step ahead", "Others bf16", "_fused_adamw_", m.step_ahead),
    Fault("rows for one place are not added", "Others bf16", "index_add", m.index_add_without_duplicates),
    Fault("last of the largest", "Others bf16", "topk", m.last_is_first, 1, 1),
    Fault("unscaled twice", "Others bf16", "_amp_foreach_non_finite_check_and_unscale_", m.scaled(1 / 1024), 1, 1),
    Fault("copy is not waited for", "Others bf16", "convolution", m.from_late_copy),
]  # fmt: skip

_ATTENTION = "_scaled_dot_product_flash_attention_for_cpu"
_PRODUCTS = [
    Fault("one element of a large product", "Products", "mm", m.one_off_by(1e-4)),
    Fault("errors of a product that cancel each other", "Products", "mm", m.cancelling(1e-4)),
    Fault("two rows of a product exchanged", "Products", "mm", m.exchanged_neighbours(0)),
    Fault("two elements of a product exchanged", "Products", "mm", m.exchanged_neighbours(1)),
    Fault("last tile of a product ends early", "Products", "mm", m.last_tile_ends_early),
    Fault("large product ends early", "Products", "mm", m.without_last_terms(1)),
    Fault("large product is a little too large", "Products", "mm", m.scaled(1.0001)),
    Fault("last row of a product", "Products", "mm", m.channel(-1, 1.0001, 0)),
    Fault("large product adds up in half precision", "Products", "mm", m.added_up_in(half)),
    Fault("one element of a large convolution", "Products", "convolution", m.one_off_by(1e-3)),
    Fault("errors of a convolution that cancel each other", "Products", "convolution", m.cancelling(1e-3)),
    Fault("last picture is the one before", "Products", "convolution", m.last_picture_of_the_one_before),
    Fault("last elements of a large convolution", "Products", "convolution", m.tail(3)),
    Fault("one element of a large attention", "Products", _ATTENTION, m.one_off_by(1e-2)),
    Fault("last head of a large attention", "Products", _ATTENTION, m.channel(7, 1.001)),
    Fault("one element of a large product", "Products bf16", "mm", m.one_off_by(0.1)),
    Fault("errors of a product that cancel each other", "Products bf16", "mm", m.cancelling(0.02)),
    Fault("two elements of a product exchanged", "Products bf16", "mm", m.exchanged_neighbours(1)),
    Fault("last tile of a product ends early", "Products bf16", "mm", m.last_tile_ends_early),
    Fault("large product rounds towards zero", "Products bf16", "mm", m.truncated),
    Fault("large product in bfloat16", "Products bf16", "mm", m.added_up_in(brain)),
    Fault("one element of a large convolution", "Products bf16", "convolution", m.one_off_by(0.1)),
    Fault("large convolution rounds towards zero", "Products bf16", "convolution", m.truncated),
    Fault("last picture is the one before", "Products bf16", "convolution", m.last_picture_of_the_one_before),
    Fault("one element of a large attention", "Products bf16", _ATTENTION, m.one_off_by(0.5)),
    Fault("large attention with another scale", "Products bf16", _ATTENTION, m.with_option(scale=0.1255)),
]  # fmt: skip

FAULTS = [*_IMAGES, *_WORDS, *_SEQUENCES, *_BF16, *_OTHERS, *_PRODUCTS]

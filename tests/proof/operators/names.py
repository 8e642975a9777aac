"""The trainings, the faults, and what must be said of each; without torch, for pytest's own processes."""

from __future__ import annotations

from typing import NamedTuple

from torchferry.proof.model import Cause

CPU = "cpu"
EQUAL = ("ConvNet", "Transformer", "Recurrent", "Adversaries")

OPTIMIZERS = (
    "SGD", "SGD nesterov", "SGD fused", "Adam", "Adam amsgrad", "AdamW fused", "RMSprop centered", "Adagrad",
    "Adadelta", "Adamax", "Rprop", "LBFGS",
)  # fmt: skip
ZOO = (
    *OPTIMIZERS, "GRU", "bidirectional LSTM", "RNN", "LSTM cell", "attention", "causal attention", "decoder",
    "group norm", "instance norm", "channels last", "upsampling", "one dimension", "three dimensions",
    "random activations", "weight norm", "spectral norm",
)  # fmt: skip


class Expected(NamedTuple):
    """What the first difference is."""

    training: str
    cause: Cause
    reference: str | None
    migrated: str | None
    phase: str
    module: str = ""


def _wrong(training: str, operator: str, phase: str, module: str = "", reference: str = "") -> Expected:
    name = f"aten::{operator}"
    return Expected(training, Cause.RESULT, f"aten::{reference}" if reference else name, name, phase, module)


FAULTS = {
    "wrong convolution": _wrong("ConvNet", "convolution", "forward", "4"),
    "wrong pooling": _wrong("ConvNet", "max_pool2d_with_indices", "forward", "3"),
    "wrong convolution backward": _wrong("ConvNet", "convolution_backward", "backward", "4"),
    "wrong threshold backward": _wrong("ConvNet", "threshold_backward", "backward", "2"),
    "wrong optimizer": _wrong("ConvNet", "_foreach_add_.List", "optimizer", reference="add_.Tensor"),
    "wrong running statistics": _wrong("ConvNet", "native_batch_norm", "forward", "1"),
    "wrong loss": _wrong("ConvNet", "nll_loss_forward", "forward"),
    "wrong layer norm": _wrong("Transformer", "native_layer_norm", "forward", "1.layers.1.norm1"),
    "wrong layer norm backward": _wrong("Transformer", "native_layer_norm_backward", "backward", "1.layers.1.norm1"),
    "wrong gradient norm": _wrong("Transformer", "linalg_vector_norm", "optimizer"),
    "wrong second moment": _wrong("Transformer", "_foreach_addcmul_.Scalar", "optimizer", reference="addcmul_"),
    "wrong embedding backward": _wrong("Recurrent", "embedding_dense_backward", "backward", "Embedding"),
    "wrong loss of the critic": _wrong("Adversaries", "binary_cross_entropy_with_logits", "forward"),
    "zeros instead of a result": _wrong("ConvNet", "max_pool2d_with_indices", "forward", "3"),
    "other dropout mask": Expected("ConvNet", Cause.RANDOM, "aten::bernoulli_.float", "aten::bernoulli_.float", "forward", "6"),
    "other noise": Expected("Adversaries", Cause.RANDOM, "aten::randn", "aten::randn", "forward"),
    "other batch": Expected("ConvNet", Cause.DATA, "aten::lift_fresh", "aten::lift_fresh", "forward"),
    "other weights": Expected("Transformer", Cause.STATE, "aten::t", "aten::t", "forward", "0"),
    "other momentum": Expected("ConvNet", Cause.STATE, "aten::mul_.Tensor", "aten::_foreach_mul_.Scalar", "optimizer"),
    "extra operator": Expected("ConvNet", Cause.CALLS, "aten::convolution", "aten::add.Tensor", "forward", "4"),
    "missing operator": Expected("ConvNet", Cause.CALLS, "aten::relu", "aten::max_pool2d_with_indices", "forward", "3"),
    "batch norm evaluating": Expected("ConvNet", Cause.ARGUMENTS, "aten::native_batch_norm", "aten::native_batch_norm", "forward", "1"),
    "other learning rate": Expected("ConvNet", Cause.ARGUMENTS, "aten::add_.Tensor", "aten::_foreach_add_.List", "optimizer"),
    "no update": Expected("ConvNet", Cause.CALLS, "aten::add.Tensor", None, "optimizer"),
}  # fmt: skip

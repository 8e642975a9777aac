"""Along which dimensions products, convolutions, normalisations, attention and tables can be computed part by part."""

from __future__ import annotations

from torchferry.accuracy.model import Value
from torchferry.accuracy.replay.division import Axis, Division, Named, Rule, has

_CONVOLUTIONS = (
    "convolution", "_convolution", "cudnn_convolution", "miopen_convolution", "mkldnn_convolution", "_slow_conv2d_forward",
    "slow_conv3d_forward", "convolution_overrideable", "_conv_depthwise2d", "conv_depthwise3d", "cudnn_convolution_transpose",
    "miopen_depthwise_convolution", "miopen_convolution_transpose",
)  # fmt: skip
_BATCH_NORMS = (
    "native_batch_norm*", "_native_batch_norm*", "cudnn_batch_norm*", "miopen_batch_norm*", "_batch_norm_with_update*",
    "batch_norm_backward",
)  # fmt: skip


def _product(named: Named) -> list[Division]:
    """Rows of the first matrix, columns of the second; before them, matrices."""
    one, other = ("mat1", "mat2") if named.shape("mat1") else ("self", "mat2")
    if named.shape("batch1"):
        one, other = "batch1", "batch2"
    left, right = named.shape(one), named.shape(other)
    if left is None or right is None:
        return []
    added = {"self": -2} if one != "self" else {}
    rows = named.axis(left[-2], {one: len(left) - 2, **added}, {0: len(left) - 2})
    columns = named.axis(
        right[-1], {other: len(right) - 1, **({"self": -1} if added else {})}, {0: len(left) - 1}
    )
    matrices = (
        [named.axis(left[0], {one: 0, other: 0, **({"self": 0} if added else {})}, {0: 0})]
        if len(left) == 3
        else []
    )
    if matrices and added and len(named.shape("self") or ()) != 3:
        return []
    return [Division(frozenset([0]), (*matrices, rows, columns))]


def _linear(named: Named) -> list[Division]:
    source, weight = named.shape("input", "self"), named.shape("weight")
    if source is None or weight is None or len(weight) != 2 or len(source) < 2:
        return []
    name = "input" if named.shape("input") else "self"
    rows = [named.axis(source[at], {name: at}, {0: at}) for at in range(len(source) - 1)]
    columns = named.axis(weight[0], {"weight": 0, "bias": 0}, {0: len(source) - 1})
    return [Division(frozenset([0]), (*rows, columns))]


def _convolution(named: Named) -> list[Division]:
    """Images; and the channels that come out, unless they are in groups."""
    source, weight = named.shape("input", "self"), named.shape("weight")
    if source is None or weight is None or len(source) != len(weight):
        return []
    images = named.axis(source[0], {"input": 0, "self": 0}, {0: 0})
    is_transposed = named.given.get("transposed") is True or "transpose" in named.call.operator
    if named.given.get("groups", 1) != 1 or "depthwise" in named.call.operator:
        return [Division(frozenset([0]), (images,))]
    count = weight[1 if is_transposed else 0]
    channels = named.axis(count, {"weight": 1 if is_transposed else 0, "bias": 0}, {0: 1})
    return [Division(frozenset([0]), (images, channels))]


def _convolution_backward(named: Named) -> list[Division]:
    """The gradient of the images by images; those of the weights by channels that go in and come out."""
    source, weight, gradient = named.shape("input"), named.shape("weight"), named.shape("grad_output")
    mask = named.given.get("output_mask")
    if (
        source is None
        or weight is None
        or gradient is None
        or not isinstance(mask, tuple)
        or len(source) != len(weight)
    ):
        return []
    of_input, of_weight, of_bias = (named.result(at) if asked else None for at, asked in enumerate(mask))
    found = []
    is_plain = named.given.get("groups", 1) == 1
    out, into = (1, 0) if named.given.get("transposed") is True else (0, 1)
    if of_input is not None:
        images = named.axis(source[0], {"grad_output": 0, "input": 0}, {of_input: 0})
        channels = [named.axis(source[1], {"input": 1, "weight": into}, {of_input: 1})] if is_plain else []
        arguments = {"output_mask": (True, False, False)}
        found.append(Division(frozenset([of_input]), (images, *channels), arguments))
    of_both = frozenset(each for each in (of_weight, of_bias) if each is not None)
    if of_both and is_plain:
        there = {} if of_bias is None else {of_bias: 0}
        there |= {} if of_weight is None else {of_weight: out}
        bias = () if named.given.get("bias_sizes") is None else (("bias_sizes", 0),)
        outer = named.axis(gradient[1], {"grad_output": 1, "weight": out}, there, bias)
        inner = named.axis(
            source[1], {"input": 1, "weight": into}, {} if of_weight is None else {of_weight: into}
        )
        found.append(Division(of_both, (outer, inner), {"output_mask": (False, *mask[1:])}))
    return found


def _batch_norm(named: Named) -> list[Division]:
    """By channels; scratch memory has no dimension for them."""
    source = named.shape("input")
    if source is None or len(source) < 2:
        return []
    inputs = {
        at: 1 if len(each.shape) == len(source) else 0 for at, each in enumerate(named.inputs) if each.shape
    }
    outputs = {at: 1 if len(each.shape) == len(source) else 0 for at, each in enumerate(named.outputs)}
    outputs = {
        at: dimension for at, dimension in outputs.items() if has(named.outputs[at], dimension, source[1])
    }
    inputs = {
        at: dimension for at, dimension in inputs.items() if has(named.inputs[at], dimension, source[1])
    }
    return [Division(frozenset(outputs), (Axis(source[1], inputs, outputs),))]


def _layer_norm(named: Named) -> list[Division]:
    """By rows; what is added up over all rows, by columns."""
    source, normalised = named.shape("input"), named.given.get("normalized_shape")
    if source is None or not isinstance(normalised, tuple):
        return []
    rows = len(source) - len(normalised)
    by_rows = [
        at
        for at, each in enumerate(named.outputs)
        if each.shape[:rows] == source[:rows] and len(each.shape) == len(source)
    ]
    axes = []
    for dimension in range(rows):
        inputs = {at: dimension for at, each in enumerate(named.inputs) if len(each.shape) == len(source)}
        axes.append(Axis(source[dimension], inputs, dict.fromkeys(by_rows, dimension)))
    mask = named.given.get("output_mask")
    arguments: dict[str, Value] = (
        {"output_mask": (True, *[False] * (len(mask) - 1))} if isinstance(mask, tuple) else {}
    )
    found = [Division(frozenset(by_rows), tuple(axes), arguments)]
    others = named.all_outputs() - set(by_rows)
    if others and isinstance(mask, tuple) and len(normalised) == 1:
        inputs = {
            at: len(each.shape) - 1
            for at, each in enumerate(named.inputs)
            if each.shape and each.shape[-1] == source[-1]
        }
        columns = Axis(source[-1], inputs, dict.fromkeys(others, 0), (("normalized_shape", 0),))
        found.append(Division(others, (columns,), {"output_mask": (False, *mask[1:])}))
    return found


def _group_norm(named: Named) -> list[Division]:
    source = named.shape("input")
    if source is None:
        return []
    count = source[0]
    outputs = {
        at: 0 for at, each in enumerate(named.outputs) if len(each.shape) > 1 and each.shape[0] == count
    }
    inputs = {at: 0 for at, each in enumerate(named.inputs) if len(each.shape) > 1 and each.shape[0] == count}
    mask = named.given.get("output_mask")
    arguments: dict[str, Value] = {"output_mask": (True, False, False)} if mask is not None else {}
    return [Division(frozenset(outputs), (Axis(count, inputs, outputs, (("N", None),)),), arguments)]


def _attention(named: Named) -> list[Division]:
    """By batches, and by heads where all have as many."""
    query, key = named.shape("query"), named.shape("key")
    if query is None or key is None or len(query) != 4 or named.given.get("dropout_p"):
        return []
    axes = []
    for dimension in (0, 1) if query[1] == key[1] else (0,):
        size = query[dimension]
        inputs = {
            at: dimension
            for at, each in enumerate(named.inputs)
            if len(each.shape) > 2 and has(each, dimension, size)
        }
        outputs = {
            at: dimension
            for at, each in enumerate(named.outputs)
            if len(each.shape) > 2 and has(each, dimension, size)
        }
        axes.append(Axis(size, inputs, outputs))
    return [Division(frozenset(axes[0].outputs), tuple(axes))]


def _embedding(named: Named) -> list[Division]:
    """Positions, and columns of the table."""
    table, indices = named.shape("weight"), named.shape("indices")
    if table is None or indices is None:
        return []
    axes = [named.axis(size, {"indices": at}, {0: at}) for at, size in enumerate(indices)]
    columns = named.axis(table[1], {"weight": 1}, {0: len(indices)})
    return [Division(frozenset([0]), (*axes, columns), rows=named.numbers("weight", "indices"))]


def _embedding_backward(named: Named) -> list[Division]:
    """Columns alone: any position may be of any row."""
    gradient = named.shape("grad_output")
    if gradient is None or named.given.get("scale_grad_by_freq"):
        return []
    return [Division(frozenset([0]), (named.axis(gradient[-1], {"grad_output": len(gradient) - 1}, {0: 1}),))]


def _likelihood_backward(named: Named) -> list[Division]:
    """Rows; what all were divided by is an argument."""
    scores = named.shape("self")
    if scores is None or len(scores) != 2:
        return []
    names = {"self": 0, "target": 0, **({"grad_output": 0} if named.given.get("reduction") == 0 else {})}
    return [Division(frozenset([0]), (named.axis(scores[0], names, {0: 0}),))]


BY_NAME: dict[str, Rule] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "_addmm_activation"), _product),
    **dict.fromkeys(("linear", "mkldnn_linear", "_mkl_linear"), _linear),
    **dict.fromkeys(_CONVOLUTIONS, _convolution),
    **dict.fromkeys(("convolution_backward", "convolution_backward_overrideable"), _convolution_backward),
    **dict.fromkeys(("native_layer_norm", "native_layer_norm_backward", "_fused_rms_norm"), _layer_norm),
    **dict.fromkeys(("native_group_norm", "native_group_norm_backward"), _group_norm),
    "embedding": _embedding,
    "embedding_dense_backward": _embedding_backward,
    "nll_loss_backward": _likelihood_backward,
}
BY_PATTERN: list[tuple[tuple[str, ...], Rule]] = [
    (_BATCH_NORMS, _batch_norm),
    (("_scaled_dot_product_*",), _attention),
]

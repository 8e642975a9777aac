"""What operators' names say: which do the same job, which only carry data around, which draw random numbers."""

from __future__ import annotations

import re
from functools import cache

from torchferry.operators.equivalents import CALLED_BEFORE, CALLED_ELSEWHERE, EQUIVALENTS

# A part of an operator's name -> what it does. The first that fits; "backward" is kept apart from forward.
_FAMILIES = (
    ("dropout", "dropout"),
    ("bernoulli", "dropout"),
    ("attention", "attention"),
    ("batch_norm", "batch norm"),
    ("layer_norm", "layer norm"),
    ("group_norm", "group norm"),
    ("rms_norm", "rms norm"),
    ("rnn", "recurrent layer"),
    ("lstm", "recurrent layer"),
    ("gru", "recurrent layer"),
    ("conv", "convolution"),
    ("log_softmax", "log softmax"),
    ("softmax", "softmax"),
    ("nll_loss", "nll loss"),
    ("ctc_loss", "ctc loss"),
    ("embedding", "embedding"),
    ("max_pool", "max pool"),
    ("avg_pool", "avg pool"),
    ("upsample", "resize"),
    ("interpolate", "resize"),
    ("grid_sampler", "grid sampler"),
    ("weight_norm", "weight norm"),
    ("adam", "optimizer step"),
    ("sgd", "optimizer step"),
)
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
        "full_like", "_efficientzerotensor", "_has_compatible_shallow_copy_type", "equal", "is_same_size",
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
    """aten::add for aten::add.Tensor."""
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
    for part, what in _FAMILIES:
        if part in plain:
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

"""Inputs for every composition, and what runs a composition and its original on them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from torchferry.operators.compositions import Composition

SHAPES = ((7,), (3, 5), (2, 3, 4))
FLOATS = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Case:
    """One call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    constants: tuple[int, ...] = ()  # positions of tensors that the original gives no gradient for


def function_of(composition: Composition) -> Callable[..., Any]:
    """What the composition's text defines."""
    space: dict[str, Any] = {"torch": torch}
    exec(composition.python, space)
    found: Callable[..., Any] = space[composition.function]
    return found


def original_of(composition: Composition) -> Callable[..., Any]:
    """What it replaces."""
    found: Callable[..., Any] = eval(composition.replaces, {"torch": torch})
    return found


@dataclass(frozen=True)
class Outcome:
    """What a call gave."""

    results: list[torch.Tensor]
    gradients: list[torch.Tensor]


def run(
    function: Callable[..., Any],
    case: Case,
    backward: bool,
    watched: AbstractContextManager[object] | None = None,
) -> Outcome:
    """Call it on copies of the inputs, then backward with a gradient that differs by place; `watched` sees the calls."""
    args, kwargs = copy.deepcopy((case.args, case.kwargs))
    leaves: list[torch.Tensor] = []
    if backward:
        variable = [value for place, value in enumerate(args) if place not in case.constants]
        leaves = [leaf.requires_grad_() for leaf in tree_leaves((variable, kwargs)) if _is_float(leaf)]
    with watched or nullcontext():
        given = _results(function, args, kwargs)
    results = [leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.Tensor)]
    if not leaves:
        return Outcome(results, [])
    weights = [_weights(result) for result in results]
    with watched or nullcontext():
        gradients = torch.autograd.grad(results, leaves, weights, allow_unused=True)
    return Outcome(
        results, [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, gradients, strict=True)]
    )


def _results(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    result = function(*args, **kwargs)
    if isinstance(result, torch.optim.Optimizer):
        for _ in range(3):
            for number, parameter in enumerate(args[0], 1):
                parameter.grad = torch.full_like(parameter, 0.1 * number)
            result.step()
        return list(args[0])
    return result


def _is_float(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex())


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, tensor.numel(), dtype=tensor.dtype).view(tensor.shape)


class Recorder(TorchDispatchMode):
    """Notes the names of the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        namespace, _, name = func.name().partition("::")
        if namespace == "aten":  # and not the profiler's marks
            self.names.add(name)
        return func(*args, **(kwargs or {}))


def operators_of(function: Callable[..., Any], cases: Iterable[Case], backward: bool) -> list[str]:
    """Every operator that is called with these inputs."""
    recorder = Recorder()
    for case in cases:
        run(function, case, backward, recorder)
    return sorted(recorder.names)


def cases_of(function: str, dtype: torch.dtype) -> list[Case]:
    """The inputs of a composition, by the name of its function."""
    torch.manual_seed(7)
    return [_in_dtype(case, dtype) for case in CASES[function]()]


def _in_dtype(case: Case, dtype: torch.dtype) -> Case:
    def change(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    return Case(
        tree_map_only(torch.Tensor, change, case.args),
        tree_map_only(torch.Tensor, change, case.kwargs),
        case.constants,
    )


def _unary(low: float = -3.0, high: float = 3.0, *extra: float) -> Callable[[], list[Case]]:
    def made() -> list[Case]:
        cases = [Case((torch.rand(shape) * (high - low) + low,)) for shape in SHAPES]
        return [*cases, Case((torch.tensor(extra),))] if extra else cases

    return made


def _binary(*extra: tuple[float, float]) -> Callable[[], list[Case]]:
    def made() -> list[Case]:
        cases = [Case((torch.randn(shape), torch.randn(shape))) for shape in SHAPES]
        if extra:
            first, second = zip(*extra, strict=True)
            cases.append(Case((torch.tensor(first), torch.tensor(second))))
        return cases

    return made


def _matrices(rows: int = 4, columns: int = 4) -> torch.Tensor:
    return torch.randn(2, rows, columns) + 4 * torch.eye(rows, columns)


def _cholesky_factors() -> torch.Tensor:
    matrix = _matrices()
    return torch.linalg.cholesky(matrix @ matrix.mT + torch.eye(4))


def _pooled() -> list[Case]:
    values, where = torch.nn.functional.max_pool2d(torch.randn(2, 3, 6, 8), 2, return_indices=True)
    return [Case((values, where, (6, 8)))]


def _encoder() -> list[Case]:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    return [Case((encoder.requires_grad_(False), torch.randn(2, 5, 8)))]


def _indices(*shape: int, below: int) -> torch.Tensor:
    return torch.randint(0, below, shape)


NAN, INF = float("nan"), float("inf")
CASES: dict[str, Callable[[], list[Case]]] = {
    "fmax": _binary((1.0, NAN), (NAN, 2.0)),
    "fmin": _binary((1.0, NAN), (NAN, 2.0)),
    "heaviside": lambda: [Case((torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5, 0.25, 0.5])))],
    "hypot": _binary(),
    "copysign": _binary((1.0, -0.0), (-2.0, 0.0), (3.0, -INF)),
    "huber_loss": lambda: [
        Case((torch.randn(3, 5) * 3, torch.randn(3, 5)), {"reduction": reduction, "delta": delta})
        for reduction in ("mean", "sum", "none")
        for delta in (0.5, 1.0, 2.0)
    ],
    "multi_margin_loss": lambda: [
        Case((torch.randn(6, 5), _indices(6, below=5)), {"p": p, "margin": margin})
        for p in (1, 2)
        for margin in (1.0, 0.5)
    ],
    "lgamma": _unary(0.05, 40.0, 0.5, 1.5, 100.0),
    "digamma": _unary(0.05, 40.0, 0.5, 2.0, 100.0),
    "logcumsumexp": lambda: [Case((torch.randn(3, 6) * 5, dim)) for dim in (0, 1)],
    "mode_values": lambda: [Case((_indices(4, 9, below=3), dim)) for dim in (0, 1)],
    "nanmedian_values": lambda: [Case((torch.tensor([[3.0, NAN, 1.0, 2.0], [NAN, NAN, 5.0, 4.0]]), 1))],
    "index_reduce": lambda: [
        Case((torch.rand(4, 3) + 0.5, 0, torch.tensor([0, 2, 0]), torch.rand(3, 3) + 0.5, reduce), {})
        for reduce in ("prod", "mean", "amax", "amin")
    ],
    "special_entr": _unary(0.01, 3.0),
    "special_xlog1py": lambda: [Case((torch.randn(3, 4), torch.rand(3, 4)))],
    "special_erfcx": _unary(-3.0, 5.0),
    "special_log_ndtr": _unary(-6.0, 4.0),
    "special_ndtri": _unary(0.02, 0.98),
    "solve": lambda: [Case((_matrices(), torch.randn(2, 4, 3))), Case((_matrices()[0], torch.randn(4)))],
    "cholesky_inverse": lambda: [Case((_cholesky_factors(),))],
    "cholesky_solve": lambda: [Case((torch.randn(2, 4, 3), _cholesky_factors()))],
    "solve_triangular": lambda: [
        Case((_matrices().triu() if upper else _matrices().tril(), torch.randn(2, 4, 3)), {"upper": upper})
        for upper in (True, False)
    ],
    "lstsq_solution": lambda: [Case((_matrices(7, 4), torch.randn(2, 7, 3)))],
    "matrix_exp": lambda: [Case((torch.randn(2, 4, 4),)), Case((torch.randn(3, 3) * 2,))],
    "det": lambda: [Case((_matrices(),)), Case((_matrices()[0],))],
    "embedding_bag": lambda: [
        Case((_indices(4, 3, below=9), torch.randn(9, 5)), {"mode": mode}) for mode in ("sum", "mean", "max")
    ],
    "pdist": lambda: [Case((torch.randn(6, 4),))],
    "aminmax": lambda: [Case((torch.randn(4, 5),), {"dim": dim}) for dim in (0, 1)],
    "bucketize": lambda: [
        Case((torch.randn(4, 5), torch.linspace(-2, 2, 7)), {"right": right}) for right in (True, False)
    ],
    "searchsorted": lambda: [
        Case((torch.randn(3, 7).sort(1).values, torch.randn(3, 4)), {"right": right})
        for right in (True, False)
    ],
    "channel_shuffle": lambda: [Case((torch.randn(2, 6, 4, 4), groups)) for groups in (2, 3)],
    "complex": _binary(),
    "renorm": lambda: [Case((torch.randn(4, 5) * 2, p, dim, 1.5)) for p in (1, 2) for dim in (0, 1)],
    "embedding": lambda: [Case((_indices(4, 3, below=9), torch.randn(9, 5) * 2), {"max_norm": 1.0})],
    "isposinf": _unary(-3.0, 3.0, INF, -INF, NAN),
    "logit": lambda: [Case((torch.rand(3, 4) * 0.9 + 0.05,)), Case((torch.rand(3, 4) * 0.9 + 0.05, 0.02))],
    "logspace": lambda: [Case((0.0, 2.0, 7)), Case((-3.0, 3.0, 5), {"base": 2.0})],
    "max_unpool2d": _pooled,
    "reflection_pad3d": lambda: [Case((torch.randn(2, 3, 4, 5, 6), (1, 2, 2, 0, 3, 1)))],
    "replication_pad3d": lambda: [Case((torch.randn(2, 3, 4, 5, 6), (1, 2, 2, 0, 3, 1)))],
    "round_decimals": lambda: [Case((torch.randn(3, 4) * 10, decimals)) for decimals in (1, 2)],
    "signbit": _unary(-3.0, 3.0, -0.0, 0.0, -INF),
    "sinc": _unary(-3.0, 3.0, 0.0, 1.5),
    "std_mean": lambda: [Case((torch.randn(3, 5), dim), {"correction": n}) for dim in (0, 1) for n in (0, 1)],
    "triu_indices": lambda: [Case((4, 6, offset)) for offset in (-1, 0, 2)],
    "tril_indices": lambda: [Case((4, 6, offset)) for offset in (-1, 0, 2)],
    "adaptive_max_pool3d": lambda: [Case((torch.randn(2, 3, 4, 6, 8), (2, 3, 4)))],
    "narrow_copy": lambda: [Case((torch.randn(4, 6), dim, 1, 2)) for dim in (0, 1)],
    "histogram_counts": lambda: [Case((torch.rand(50), 8, 0.0, 1.0))],
    "all_dims": lambda: [Case((torch.rand(3, 4, 5) > 0.1, dims)) for dims in ((0, 2), (1, -1))],
    "any_dims": lambda: [Case((torch.rand(3, 4, 5) > 0.9, dims)) for dims in ((0, 2), (1, -1))],
    "scatter_with_reduce": lambda: [
        Case((torch.rand(4, 3), 0, _indices(3, 3, below=4), torch.rand(3, 3), reduce))
        for reduce in ("add", "multiply")
    ],
    "conj_physical": lambda: [Case((torch.randn(3, 4, dtype=torch.complex64),))],
    # sums of two products fit into 16 bits: on CPUs without VNNI, PyTorch's own product saturates there
    "int_mm": lambda: [
        Case(
            (
                torch.randint(-64, 64, (32, 64)).to(torch.int8),
                torch.randint(-64, 64, (64, 16)).to(torch.int8),
            )
        )
    ],
    "fake_quantize_per_tensor_affine": lambda: [Case((torch.randn(4, 5), 0.1, 3, -8, 7))],
    "fake_quantize_per_channel_affine": lambda: [
        Case(
            (torch.randn(4, 5), torch.full((5,), 0.1), torch.ones(5, dtype=torch.int32), 1, -8, 7),
            constants=(1,),
        )
    ],
    "without_fast_path": _encoder,
    "adamw": lambda: [Case(([torch.randn(3, 4), torch.randn(5)],))],
    "adagrad": lambda: [Case(([torch.randn(3, 4), torch.randn(5)],))],
}

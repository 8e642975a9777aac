"""Judges decompositions of matrices: signs, the order of equal values and pivots are free, but what the parts make
together is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.accuracy.judge.execution import doubled, is_floating
from torchferry.accuracy.judge.margins import digits_of
from torchferry.text import Text

_CONSTANT = 32.0  # of the backward error, times the size of the matrix: LAPACK's algorithms stay below 10
Arguments = Mapping[str, Any]
Parts = Sequence[torch.Tensor | None]

_PRODUCT = Text(
    "the product of its factors is not the matrix: error {ratio:.3g} times the normal value",
    "各因子相乘不能还原矩阵：误差是正常值的 {ratio:.3g} 倍",
)
_ORTHOGONAL = Text(
    "its vectors are not orthonormal: error {ratio:.3g} times the normal value",
    "向量不是标准正交的：误差是正常值的 {ratio:.3g} 倍",
)


@dataclass(frozen=True)
class _Claim:
    """Two matrices that should be the same, up to the size of what they were made of."""

    mine: torch.Tensor
    right: torch.Tensor
    scale: torch.Tensor  # one number for each matrix
    text: Text = _PRODUCT


# The matrix that was decomposed, what came out (both in double precision), and the arguments.
Claims = Callable[[torch.Tensor, Sequence[Any], Arguments], list[_Claim]]


@dataclass(frozen=True)
class _Decomposition:
    free: frozenset[int]  # outputs that may be others and yet be right
    claims: Claims
    needed: tuple[int, ...] = (0, 1)  # outputs without which nothing can be claimed


def free_outputs(operator: str) -> frozenset[int]:
    """Of an operator named aten::_linalg_svd: the outputs that no reference can be held against."""
    found = _DECOMPOSITIONS.get(operator)
    return found.free if found is not None else frozenset()


def problem(operator: str, arguments: Arguments, parts: Parts) -> tuple[float, Text] | None:
    """By how many times what is normal the parts are off, and what is; None: nothing is, or nothing can be said."""
    decomposition = _DECOMPOSITIONS[operator]
    matrix: torch.Tensor = arguments["A"] if "A" in arguments else arguments["self"]
    size = max(*matrix.shape[-2:], 1)
    dtype = next((part.dtype for part in parts if part is not None and is_floating(part)), matrix.dtype)
    digits = digits_of(str(dtype).removeprefix("torch."))
    needed = [parts[at] for at in decomposition.needed]
    if digits is None or not matrix.numel() or any(part is None or not part.numel() for part in needed):
        return None
    limit = _CONSTANT * size * 2.0**-digits.digits
    matrix = doubled(matrix)
    worst: tuple[float, Text] | None = None
    finite = matrix.isfinite().flatten(-2).all(-1)
    try:
        precise = [doubled(part) if part is not None else None for part in parts]
        claims = decomposition.claims(matrix, precise, arguments)
    except RuntimeError:  # pivots that are none
        return math.inf, _PRODUCT.format(ratio=math.inf)
    for claim in claims:
        difference = torch.linalg.matrix_norm(claim.mine - claim.right)
        ratio = (difference / (limit * claim.scale)).where(difference != 0, torch.zeros(()).double())[finite]
        ratio = torch.nan_to_num(ratio, math.inf, math.inf)
        if ratio.numel() and float(ratio.max()) > max(1.0, worst[0] if worst else 0.0):
            worst = float(ratio.max()), claim.text
    return (worst[0], worst[1].format(ratio=worst[0])) if worst is not None else None


def _size(matrix: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = torch.linalg.matrix_norm(matrix)
    return found


def _orthonormal(vectors: torch.Tensor) -> _Claim:
    right = torch.eye(vectors.shape[-1], dtype=vectors.dtype).expand(
        *vectors.shape[:-2], *[vectors.shape[-1]] * 2
    )
    return _Claim(vectors.mH @ vectors, right, _size(right), _ORTHOGONAL)


def _of_svd(matrix: torch.Tensor, parts: Sequence[Any], _: Arguments) -> list[_Claim]:
    left, values, right = parts[:3]
    count = values.shape[-1]
    made = left[..., :count] * values.unsqueeze(-2).to(left.dtype) @ right[..., :count, :]
    return [_Claim(made, matrix, _size(matrix)), _orthonormal(left), _orthonormal(right.mH)]


def _of_eigh(given: torch.Tensor, parts: Sequence[Any], arguments: Arguments) -> list[_Claim]:
    """Only one triangle of the matrix is looked at."""
    values, vectors = parts[:2]
    is_upper = str(arguments.get("UPLO", "L")).upper() == "U"
    part = given.triu(1) if is_upper else given.tril(-1)
    diagonal = torch.diagonal(given, dim1=-2, dim2=-1)
    diagonal = diagonal.real if diagonal.is_complex() else diagonal
    matrix = part + part.mH + torch.diag_embed(diagonal).to(part.dtype)
    made = vectors * values.unsqueeze(-2).to(vectors.dtype) @ vectors.mH
    return [_Claim(made, matrix, _size(matrix)), _orthonormal(vectors)]


def _of_eig(given: torch.Tensor, parts: Sequence[Any], _: Arguments) -> list[_Claim]:
    matrix, (values, vectors) = given.to(torch.complex128), parts[:2]
    lengths = torch.linalg.vector_norm(vectors, dim=-2, keepdim=True)
    return [
        _Claim(matrix @ vectors, vectors * values.unsqueeze(-2), _size(matrix)),
        _Claim(lengths, torch.ones_like(lengths), _size(lengths), _ORTHOGONAL),
    ]


def _of_values(given: torch.Tensor, parts: Sequence[Any], _: Arguments) -> list[_Claim]:
    """Eigenvalues come in any order, and those of some matrices have few digits: sums of their powers have all."""
    matrix, values = given.to(torch.complex128), parts[0]
    claims, power = [], matrix
    for exponent in (1, 2, 3):
        right = torch.diagonal(power, dim1=-2, dim2=-1).sum(-1)
        mine = values.to(torch.complex128).pow(exponent).sum(-1)
        scale = _size(matrix).pow(exponent) * values.shape[-1]
        claims.append(_Claim(mine[..., None, None], right[..., None, None], scale))
        power = power @ matrix
    return claims


def _of_qr(matrix: torch.Tensor, parts: Sequence[Any], _: Arguments) -> list[_Claim]:
    left, right = parts[:2]
    if left is None or not left.numel():  # only one of the two was asked for
        return [_Claim(right.mH @ right, matrix.mH @ matrix, _size(matrix).square())]
    claims = [_Claim(left @ right, matrix, _size(matrix)), _orthonormal(left)]
    return [*claims, _Claim(right.tril(-1), torch.zeros_like(right), _size(right))]


def _of_geqrf(matrix: torch.Tensor, parts: Sequence[Any], _: Arguments) -> list[_Claim]:
    packed, factors = parts[:2]
    count = min(packed.shape[-2:])
    left = torch.linalg.householder_product(packed[..., :count], factors)
    return [_Claim(left @ packed.triu()[..., :count, :], matrix, _size(matrix))]


def _of_lu(matrix: torch.Tensor, parts: Sequence[Any], _: Arguments) -> list[_Claim]:
    order, lower, upper = parts[:3]
    if order is None:
        return []
    made = lower @ upper
    permuted = order @ made if order.numel() else made
    return [
        _Claim(permuted, matrix, _size(matrix)),
        _Claim(upper.tril(-1), torch.zeros_like(upper), _size(matrix)),
        _Claim(lower.triu(1), torch.zeros_like(lower), _size(matrix)),
    ]


def _of_packed_lu(first: int) -> Claims:
    """Both triangles in one matrix, the pivots in the output behind; some kernels take the matrix transposed."""

    def claims(matrix: torch.Tensor, parts: Sequence[Any], arguments: Arguments) -> list[_Claim]:
        packed, pivots = parts[first : first + 2]
        if pivots is None:
            return []
        has_pivots = bool(pivots.numel()) and arguments.get("pivot", True) is not False
        order, lower, upper = torch.lu_unpack(packed, pivots, unpack_pivots=has_pivots)
        made = order.to(lower.dtype) @ lower @ upper if has_pivots else lower @ upper
        ways = [matrix] if matrix.shape[-1] != matrix.shape[-2] else [matrix, matrix.mT]
        off = [torch.linalg.matrix_norm(made - way).nan_to_num(math.inf).sum() for way in ways]
        return [_Claim(made, ways[int(torch.stack(off).argmin())], _size(matrix))]

    return claims


_DECOMPOSITIONS: dict[str, _Decomposition] = {
    "aten::_linalg_svd": _Decomposition(frozenset({0, 2}), _of_svd, needed=(0, 1, 2)),
    "aten::_linalg_eigh": _Decomposition(frozenset({1}), _of_eigh),
    "aten::linalg_eig": _Decomposition(frozenset({0, 1}), _of_eig),
    "aten::_linalg_eigvals": _Decomposition(frozenset({0}), _of_values, needed=(0,)),
    "aten::linalg_eigvals": _Decomposition(frozenset({0}), _of_values, needed=(0,)),
    "aten::linalg_qr": _Decomposition(frozenset({0, 1}), _of_qr, needed=(1,)),
    "aten::geqrf": _Decomposition(frozenset({0, 1}), _of_geqrf),
    "aten::linalg_lu": _Decomposition(frozenset({0, 1, 2}), _of_lu, needed=(1, 2)),
    "aten::linalg_lu_factor_ex": _Decomposition(frozenset({0, 1}), _of_packed_lu(0), needed=(0,)),
    "aten::_linalg_det": _Decomposition(frozenset({1, 2}), _of_packed_lu(1), needed=(1,)),
    "aten::_linalg_slogdet": _Decomposition(frozenset({2, 3}), _of_packed_lu(2), needed=(2,)),
    "aten::_linalg_solve_ex": _Decomposition(frozenset({1, 2}), _of_packed_lu(1), needed=(1,)),
}

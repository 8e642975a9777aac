"""The vendor's limits: operators and dtypes that it lacks."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from tests.sim.checking import Target
from torchferry.sim import native
from torchferry.sim.native import OperatorVerdict
from torchferry.vendors.model import MissingOperator, Narrowing
from torchferry.vendors.ops import load_ops


def missing_operator(target: Target) -> tuple[str, object]:
    """An operator that the vendor's table lacks, and its function; None where the table is not complete."""
    ops = load_ops(Path(target.vendor.folder))
    candidates = {
        "lgamma": torch.lgamma,
        "special_ndtri": torch.special.ndtri,
        "special_bessel_j0": torch.special.bessel_j0,
        "special_spherical_bessel_j0": torch.special.spherical_bessel_j0,
    }
    for name, run in candidates.items():
        if ops.complete and all(ops.has_kernel(f"{name}{overload}") is False for overload in ("", ".out")):
            return f"aten::{name}.out", run
    assert not ops.complete, "a complete table lacks none of the candidates: add one that it lacks"
    return "", None


def check_a_missing_operator_does_what_the_vendors_adapter_does(target: Target) -> None:
    name, run = missing_operator(target)
    if run is None:
        return  # nothing is known to be missing
    x = torch.full((2,), 0.5, device=target.type)
    if target.vendor.limits.missing_operator is MissingOperator.RAISES:
        with pytest.raises(NotImplementedError, match=name):
            run(x)  # type: ignore[operator]
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(x)  # type: ignore[operator]
        run(x)  # type: ignore[operator]
    assert len([warning for warning in caught if name in str(warning.message)]) == 1
    uses = {use.name: use for use in native.operator_uses()}
    assert uses[name].calls >= 2 and uses[name].verdict is OperatorVerdict.FALLS_BACK


def check_without_limits_nothing_is_refused(target: Target) -> None:
    _, run = missing_operator(target)
    if run is not None:
        with native.limits(False), warnings.catch_warnings():
            warnings.simplefilter("error")
            run(torch.full((2,), 0.5, device=target.type))  # type: ignore[operator]


def check_ordinary_training_meets_no_missing_operator(target: Target) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.randn(2, 3, 8, 8, device=target.type, requires_grad=True)
        y = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU()).to(
            target.type
        )(x)
        torch.nn.functional.softmax(y, 1).log().mean().backward()


def check_dtypes_are_narrowed_as_the_vendor_does(target: Target) -> None:
    third = torch.full((2,), 1 / 3, dtype=torch.float64)
    limit = target.vendor.limits.dtypes.get("float64")
    narrowing = limit.narrowing if limit is not None and limit.applies({}) else None
    there = third.to(target.type)
    assert torch.equal(there.cpu(), third)  # a move computes nothing
    assert torch.equal(third, torch.full((2,), 1 / 3, dtype=torch.float64))
    computed = (there * 1).cpu()
    assert computed.dtype is torch.float64
    assert torch.equal(computed, third) == (narrowing is not Narrowing.COMPUTED_AS)
    cast = there.float().double()
    assert cast.dtype is (torch.float32 if narrowing is Narrowing.CAST_AS else torch.float64)
    assert ("float64" in native.narrowed_dtypes()) == (narrowing is not None)


def check_double_precision_that_the_vendor_does_not_list_is_warned_of(target: Target) -> None:
    limit = target.vendor.limits.dtypes.get("float64")
    listed = limit is None or "bmm" not in limit.unlisted
    x = torch.ones(1, 2, 2, dtype=torch.float64).to(target.type)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            torch.bmm(x, x)
        torch.cat([x, x])
        torch.bmm(x.float(), x.float())
    words = [str(warning.message) for warning in caught if "does not list float64" in str(warning.message)]
    assert len(words) == (0 if listed else 1), words


def check_a_python_number_has_no_say_in_the_dtype(target: Target) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.bool):
        for shape in ((), (2,)):
            host = torch.ones(shape, dtype=dtype)
            there = host.to(target.type)
            for compute in (lambda x: x * 0.5, lambda x: 0.5 * x, lambda x: x / 3.0, lambda x: x + 2):
                assert compute(there).dtype is compute(host).dtype, (dtype, shape)
            mixed = there * torch.ones(shape, dtype=torch.float64).to(target.type)
            assert mixed.dtype is torch.float64, (dtype, shape)


def check_data_parallel_is_refused(target: Target) -> None:
    with pytest.raises(
        RuntimeError, match=f"DistributedDataParallel with backend '{target.vendor.dist_backend}'"
    ):
        torch.nn.DataParallel(torch.nn.Linear(2, 2))


def check_data_parallel_over_one_device_is_the_module(target: Target) -> None:
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2), device_ids=[1])
    assert model.module.weight.device == torch.device(target.type, 1)
    x = torch.randn(3, 2)  # on the host: DataParallel moves it
    y = model(x)
    y.sum().backward()
    assert torch.equal(y, model.module(x.to(y.device)))
    assert model.module.weight.grad is not None
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(RuntimeError, match="--devices 1"):
        torch.nn.DataParallel(torch.nn.Linear(2, 2), device_ids=[0, 1])

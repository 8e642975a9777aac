"""What PyTorch refuses on the CPU is refused on the device, with the same words."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from tests.sim.checking import Target

Tensors = Callable[..., Tensor]


def _overlapping_cat(half: Tensors, single: Tensors) -> Tensor:
    x = half(4)
    return torch.cat([x[:2], x[2:]], out=x)


# of half(*shape) and single(*shape)
REFUSED: dict[str, Callable[[Tensors, Tensors], Tensor]] = {
    "linear": lambda half, single: functional.linear(half(2, 3), single(4, 3)),
    "linear with a bias": lambda half, single: functional.linear(half(2, 3), half(4, 3), single(4)),
    "mm": lambda half, single: half(2, 3) @ single(3, 4),
    "bmm": lambda half, single: torch.bmm(half(1, 2, 3), single(1, 3, 4)),
    "addmm": lambda half, single: torch.addmm(single(2, 4), half(2, 3), half(3, 4)),
    "baddbmm_": lambda half, single: single(1, 2, 2).baddbmm_(half(1, 2, 2), half(1, 2, 2)),
    "dot": lambda half, single: torch.dot(half(3), single(3)),
    "lerp": lambda half, single: torch.lerp(half(3), single(3), 0.5),
    "conv2d": lambda half, single: functional.conv2d(half(1, 1, 4, 4), single(1, 1, 3, 3)),
    "index_put": lambda half, single: half(3).index_put_((single(1).long(),), single(1)),
    "index_add": lambda half, single: half(3).index_add(0, single(1).long(), single(1)),
    "scatter": lambda half, single: half(3).scatter(0, single(1).long(), single(1)),
    "masked_scatter": lambda half, single: half(3).masked_scatter(single(3) > 0, single(3)),
    "out= of another dtype": lambda half, single: torch.mm(half(2, 2), half(2, 2), out=single(2, 2)),
    "out= of a narrower kind": lambda half, single: torch.add(half(2), half(2), out=single(2).int()),
    "overlapping memory": _overlapping_cat,
    "one element many times": lambda half, single: half(1).expand(2, 2).addmm_(half(2, 2), half(2, 2)),
}


def check_what_the_cpu_refuses_is_refused(target: Target) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        for name, run in REFUSED.items():
            on_cpu, there = (_error(run, device, dtype) for device in ("cpu", target.type))
            assert on_cpu, f"{name}: PyTorch accepts it now"
            assert there == on_cpu, f"{name} in {dtype}: {there or 'accepted'}, not {on_cpu}"


def _error(run: Callable[[Tensors, Tensors], Tensor], device: str, dtype: torch.dtype) -> str:
    def tensors(dtype: torch.dtype) -> Tensors:
        return lambda *shape: torch.ones(*shape, dtype=dtype, device=device)

    try:
        run(tensors(dtype), tensors(torch.float32))
    except RuntimeError as error:
        return str(error)
    return ""


def check_a_parameter_changed_before_backward_is_noticed(target: Target) -> None:
    for optimizer in (torch.optim.SGD, torch.optim.Adam):
        for foreach in (True, False):
            weight = torch.ones(3, device=target.type, requires_grad=True)
            factor = torch.ones(3, device=target.type, requires_grad=True)
            step = optimizer([weight], lr=1.0, foreach=foreach)
            weight.grad = torch.ones_like(weight)
            loss = (weight * factor * weight).sum()
            step.step()
            try:
                loss.backward()
            except RuntimeError as error:
                assert "modified by an inplace operation" in str(error)
            else:
                raise AssertionError(f"{optimizer.__name__}, foreach={foreach}: wrong gradients")


def check_versions_after_writing_to_lists_of_tensors(target: Target) -> None:
    writes: dict[str, Callable[[list[Tensor]], object]] = {
        "add scalar": lambda tensors: torch._foreach_add_(tensors, 1),
        "add list": lambda tensors: torch._foreach_add_(tensors, [x.clone() for x in tensors]),
        "mul tensor": lambda tensors: torch._foreach_mul_(tensors, tensors[0].new_tensor(2)),
        "addcmul": lambda tensors: torch._foreach_addcmul_(tensors, tensors, tensors),
        "addcdiv": lambda tensors: torch._foreach_addcdiv_(tensors, tensors, tensors, [1.0, 2.0]),
        "lerp": lambda tensors: torch._foreach_lerp_(tensors, tensors, 0.5),
        "copy": lambda tensors: torch._foreach_copy_(tensors, [x.clone() for x in tensors]),
        "zero": lambda tensors: torch._foreach_zero_(tensors),
        "sqrt": lambda tensors: torch._foreach_sqrt_(tensors),
        "clamp": lambda tensors: torch._foreach_clamp_max_(tensors, 1),
        "unscale": lambda tensors: torch._amp_foreach_non_finite_check_and_unscale_(
            tensors, tensors[0].new_zeros(1), tensors[0].new_ones(1)
        ),
    }
    for name, write in writes.items():
        versions = []
        for device in ("cpu", target.type):
            tensors = [torch.ones(2, device=device), torch.ones(3, device=device)]
            write(tensors)
            versions.append([tensor._version for tensor in tensors])
        assert versions[0] == versions[1], f"{name}: {versions}"

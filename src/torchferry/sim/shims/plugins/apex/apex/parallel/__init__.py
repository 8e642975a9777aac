"""apex.parallel on top of torch's own wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import SyncBatchNorm
from torch.optim import Optimizer

__all__ = [
    "LARC",
    "DistributedDataParallel",
    "Reducer",
    "SyncBatchNorm",
    "convert_syncbn_model",
    "create_syncbn_process_group",
]

# settings of apex's wrapper that change when gradients travel, not what arrives
_SCHEDULING = frozenset(
    {
        "message_size",
        "delay_allreduce",
        "shared_param",
        "allreduce_trigger_params",
        "retain_allreduce_buffers",
        "allreduce_always_fp32",
        "num_allreduce_streams",
        "allreduce_communicators",
        "prof",
    }
)


class DistributedDataParallel(nn.parallel.DistributedDataParallel):
    """torch's wrapper with apex's arguments; buffers stay each process's own."""

    def __init__(
        self,
        module: nn.Module,
        *args: Any,
        gradient_average: bool = True,
        gradient_predivide_factor: float = 1.0,
        **settings: Any,
    ) -> None:
        unknown = set(settings) - _SCHEDULING
        if unknown:
            raise TypeError(
                f"apex.parallel.DistributedDataParallel has no argument {', '.join(sorted(unknown))}"
            )
        if not gradient_average:
            raise NotImplementedError(
                "apex.parallel.DistributedDataParallel: gradient_average=False is not simulated"
            )
        super().__init__(module, broadcast_buffers=False, find_unused_parameters=True)


class Reducer:
    """Averages parameters or gradients when it is told to, not at every backward."""

    def __init__(self, module_or_grads_list: nn.Module | list[Any]) -> None:
        self.module = module_or_grads_list if isinstance(module_or_grads_list, nn.Module) else None
        self.grads = [] if isinstance(module_or_grads_list, nn.Module) else list(module_or_grads_list)
        for param in self.module.parameters() if self.module is not None else ():
            dist.broadcast(param.detach(), 0)

    def reduce(self) -> None:
        """Average the gradients over all processes."""
        grads = self.grads
        if self.module is not None:
            grads = [param.grad for param in self.module.parameters() if param.grad is not None]
        for grad in grads:
            dist.all_reduce(grad)
            grad.div_(dist.get_world_size())


def convert_syncbn_model(
    module: nn.Module, process_group: Any = None, channel_last: bool = False
) -> nn.Module:
    """Put SyncBatchNorm in the place of every batch normalisation."""
    convert: Callable[..., nn.Module] = SyncBatchNorm.convert_sync_batchnorm
    return convert(module, process_group)


def create_syncbn_process_group(group_size: int) -> Any:
    """The group of neighbours, of a given size, that this process normalises with; 0 means all."""
    if group_size == 0:
        return None
    world, rank = dist.get_world_size(), dist.get_rank()
    if world % group_size:
        raise ValueError(f"{world} processes can't be split into groups of {group_size}")
    groups = [dist.new_group(list(range(start, start + group_size))) for start in range(0, world, group_size)]
    return groups[rank // group_size]


class LARC:
    """Holds an optimizer's rate down for each weight in proportion to its norm over its gradient's; with clip, the rate is at most the optimizer's own."""

    def __init__(
        self, optimizer: Optimizer, trust_coefficient: float = 0.02, clip: bool = True, eps: float = 1e-8
    ) -> None:
        self.optim = optimizer
        self.trust_coefficient = trust_coefficient
        self.clip = clip
        self.eps = eps

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["optim"], name)

    def step(self) -> None:
        """Scale the gradients, then let the optimizer step without weight decay: it is in them already."""
        decays = [group.get("weight_decay", 0) for group in self.optim.param_groups]
        with torch.no_grad():
            for group, decay in zip(self.optim.param_groups, decays, strict=True):
                group["weight_decay"] = 0
                for param in group["params"]:
                    if param.grad is not None:
                        self._scale(param, decay, group["lr"])
        self.optim.step()
        for group, decay in zip(self.optim.param_groups, decays, strict=True):
            group["weight_decay"] = decay

    def _scale(self, param: torch.Tensor, decay: float, rate: float) -> None:
        weight, slope = param.norm(), param.grad.norm()  # type: ignore[union-attr]
        if weight == 0 or slope == 0:
            return
        own = self.trust_coefficient * weight / (slope + weight * decay + self.eps)
        if self.clip:
            own = min(own / rate, torch.ones_like(own))
        param.grad.add_(param, alpha=decay).mul_(own)  # type: ignore[union-attr]

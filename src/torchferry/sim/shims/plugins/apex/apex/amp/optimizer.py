"""An optimizer under amp: float32 masters of float16 weights, gradients without the loss scale, skipped steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.optim import Optimizer

from torchferry.sim.shims.optim.base import clip_gradients
from torchferry.sim.shims.optim.combined import combine

from ._amp_state import Properties, maybe_print
from .casts import disable_casts

_STASH = "_amp_stash"
_DTYPES = (torch.float32, torch.float16)


def attach(optimizer: Optimizer, properties: Properties) -> None:
    """Put an optimizer's step, zero_grad, add_param_group and load_state_dict under amp's care.

    The Ascend build adds methods for whoever clips all gradients at once.
    """
    stash = AmpStash(optimizer, properties)
    target: Any = optimizer
    target._amp_stash = stash
    target.step = MethodType(_step, optimizer)
    target.zero_grad = stash.zero_grad
    target.add_param_group = stash.add_param_group
    target.load_state_dict = stash.load_state_dict
    target.clip_optimizer_grad_norm_fused = stash.clip_gradients
    target.get_optimizer_combined_grads = stash.combined_gradients
    target.get_optimizer_combined_params = stash.combined_parameters


def _step(optimizer: Any, closure: Callable[[], Any] | None = None) -> Any:
    """A function of the optimizer itself, because schedulers bind it to the optimizer anew."""
    return stash_of(optimizer).step(closure)


def stash_of(optimizer: Any) -> AmpStash:
    """What amp keeps of an optimizer (or of one that is wrapped, as LARC wraps it)."""
    stash = getattr(optimizer, _STASH, None)
    if not isinstance(stash, AmpStash):
        raise RuntimeError("amp.scale_loss: this optimizer was not given to amp.initialize")
    return stash


class AmpStash:
    """Which of an optimizer's weights have masters, and where its gradients are in the middle of a step."""

    def __init__(self, optimizer: Optimizer, properties: Properties) -> None:
        self.optimizer = optimizer
        self.properties = properties
        self.has_scaled_gradients = False
        self.skip_next_step = ""  # why, when the next step must not happen
        self.half: list[Tensor] = []  # weights of the model that have a master
        self.masters: list[Tensor] = []
        self.single: list[Tensor] = []  # weights that are stepped themselves
        self._ready = False
        self._stashed: list[Tensor | None] = []
        self._pending_state: dict[str, Any] | None = None
        self._step: Callable[..., Any] = optimizer.step
        self._zero_grad: Callable[..., None] = optimizer.zero_grad
        self._add_param_group: Callable[[dict[str, Any]], None] = optimizer.add_param_group
        self._load_state_dict: Callable[[dict[str, Any]], None] = optimizer.load_state_dict

    def prepare(self) -> None:
        """Make the masters at first use: the model may have been loaded from a checkpoint since initialize."""
        if self._ready:
            return
        self._ready = True
        for group in self.optimizer.param_groups:
            self._take(group)
        if self._pending_state is not None:
            self._load_state_dict(self._pending_state)
            self._pending_state = None
        if self.properties.combine_ddp and dist.is_initialized():
            for weight in (*self.half, *self.masters, *self.single):
                dist.broadcast(weight.detach(), 0)

    def _take(self, group: dict[str, Any]) -> None:
        for index, param in enumerate(group["params"]):
            if self.properties.master_weights and param.dtype == torch.float16:
                master = param.detach().clone().float().requires_grad_(param.requires_grad)
                group["params"][index] = master
                if param in self.optimizer.state:
                    self.optimizer.state[master] = _in_single(self.optimizer.state.pop(param))
                self.half.append(param)
                self.masters.append(master)
            else:
                self.single.append(param)

    def before_backward(self) -> None:
        """Put away what earlier backwards left, so that the next one's gradients can be told from it."""
        self.prepare()
        if self.has_scaled_gradients:
            return
        for param in self.half:
            param.grad = None
        self._stashed = [param.grad for param in self.single]
        for param in self.single:
            param.grad = None

    @torch.no_grad()
    def after_backward(self, scale: float, check: bool) -> bool:
        """Unscale the new gradients and add the earlier ones; answers whether one of the new ones overflowed."""
        self.has_scaled_gradients = False
        copied = [(master, param.grad.float()) for param, master in self._halves_with_gradient()]
        own = [param.grad for param in self.single if param.grad is not None]
        gradients = [gradient for _, gradient in copied] + own
        if self.properties.combine_ddp:
            average_over_processes(gradients)
        overflow = unscale(gradients, scale, check, combined=bool(self.properties.combine_grad))
        for master, gradient in copied:
            master.grad = gradient if master.grad is None else master.grad.add_(gradient)
        for param, earlier in zip(self.single, self._stashed, strict=True):
            if earlier is not None:
                param.grad = earlier if param.grad is None else param.grad.add_(earlier)
        self._stashed = [None] * len(self.single)
        return overflow

    def _halves_with_gradient(self) -> list[tuple[Any, Tensor]]:
        pairs = zip(self.half, self.masters, strict=True)
        return [(param, master) for param, master in pairs if param.grad is not None]

    def clip_gradients(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm together is at most max_norm; answers the norm before."""
        return clip_gradients(self._gradients(), max_norm, norm_type)

    def combined_gradients(self) -> list[Tensor]:
        """One buffer for each dtype, float32 first; what is done to it is done to the gradients."""
        return _combined(self._gradients())

    def combined_parameters(self) -> list[Tensor]:
        """One buffer for each dtype, float32 first, that holds the parameters which the optimizer steps."""
        return _combined([*self.masters, *self.single])

    def _gradients(self) -> list[Tensor]:
        self.prepare()
        return [param.grad for param in (*self.masters, *self.single) if param.grad is not None]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step the masters and copy them into the model, unless gradients overflowed."""
        if closure is not None:
            raise RuntimeError("Currently, Amp does not support closure use with optimizers.")
        self.prepare()
        result = None
        if self.skip_next_step:
            maybe_print(self.skip_next_step)
            self.skip_next_step = ""
        else:
            with disable_casts():
                result = self._step()
            with torch.no_grad():
                for param, master in zip(self.half, self.masters, strict=True):
                    param.copy_(master)
        for master in self.masters:
            master.grad = None
        return result

    def zero_grad(self, *args: Any, **settings: Any) -> None:
        """Clear the model's gradients and the masters'."""
        self.prepare()
        self._zero_grad(*args, **settings)
        for master in self.masters:
            master.grad = None
        for param in self.half:
            param.grad = None

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """A group that joins late gets its masters at once."""
        self._add_param_group(param_group)
        if self._ready:
            self._take(self.optimizer.param_groups[-1])
            self._stashed += [None] * (len(self.single) - len(self._stashed))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load now; before the masters exist also keep it, so that it is not rounded to float16 on the way."""
        self._load_state_dict(state_dict)
        if not self._ready:
            self._pending_state = state_dict


def _combined(tensors: list[Tensor]) -> list[Tensor]:
    buffers = [combine([tensor for tensor in tensors if tensor.dtype == dtype]) for dtype in _DTYPES]
    return [buffer for buffer in buffers if buffer is not None]


def _in_single(state: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.float() if isinstance(value, Tensor) and value.dtype == torch.float16 else value
        for name, value in state.items()
    }


def unscale(gradients: list[Tensor], scale: float, check: bool, combined: bool) -> bool:
    """Divide gradients by the loss scale, in place; answers whether one is not finite, if that is to be checked.

    Combined, they are copied into one tensor for each dtype and back, as the vendor's build does to save launches.
    """
    overflow = False
    for group in _by_dtype(gradients) if combined else [[gradient] for gradient in gradients]:
        flat = _flat(group) if combined else group[0]
        overflow = overflow or (check and not bool(torch.isfinite(flat).all()))
        if scale != 1.0:
            flat.mul_(1.0 / scale)
        if combined:
            _copy_back(flat, group)
    return overflow


def average_over_processes(gradients: list[Tensor]) -> None:
    """Give every process the mean of all processes' gradients, in place."""
    if not dist.is_initialized():
        return
    for group in _by_dtype(gradients):
        flat = _flat(group)
        dist.all_reduce(flat)
        _copy_back(flat.div_(dist.get_world_size()), group)


def _by_dtype(gradients: list[Tensor]) -> list[list[Tensor]]:
    groups: defaultdict[torch.dtype, list[Tensor]] = defaultdict(list)
    for gradient in gradients:
        groups[gradient.dtype].append(gradient)
    return list(groups.values())


def _flat(group: list[Tensor]) -> Tensor:
    return torch.cat([gradient.reshape(-1) for gradient in group])


def _copy_back(flat: Tensor, group: list[Tensor]) -> None:
    parts = torch.split(flat, [gradient.numel() for gradient in group])
    for gradient, part in zip(group, parts, strict=True):
        gradient.copy_(part.view_as(gradient))

"""Models in another precision: weights, inputs, outputs and what is saved of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from torchferry.sim.shims.optim.base import on_device

from .casts import to_dtype
from .properties import Properties

_WRAPPERS = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def check_model(model: nn.Module) -> None:
    """Refuse a model that is wrapped, in half precision already, or not on the device."""
    if isinstance(model, _WRAPPERS):
        raise RuntimeError(
            f"amp.initialize got a {type(model).__name__}: wrap the model that amp.initialize gives back"
        )
    for name, param in model.named_parameters():
        if not param.is_floating_point():
            continue
        if param.dtype != torch.float32:
            raise RuntimeError(
                f"amp.initialize: parameter {name} is {param.dtype}, expected torch.float32; "
                "the level casts the model, the program need not"
            )
        if not on_device(param):
            raise RuntimeError(
                f"amp.initialize: parameter {name} is on the CPU; move the model to the device before"
            )


def cast_model(model: nn.Module, properties: Properties) -> None:
    """Let a model compute as the level says."""
    dtype = properties.cast_model_type
    if dtype is not None:
        for module in model.modules():
            if not (properties.keep_batchnorm_fp32 and isinstance(module, _BatchNorm) and module.affine):
                _cast_module(module, dtype)
        model.register_forward_pre_hook(partial(_cast_inputs, dtype), prepend=True, with_kwargs=True)
        outputs = properties.cast_model_outputs or torch.float32
    elif properties.cast_model_outputs is not None:
        outputs = properties.cast_model_outputs
    else:
        return
    model.register_forward_hook(partial(_cast_outputs, outputs))
    if properties.opt_level == "O2":
        register: Callable[..., Any] = model._register_state_dict_hook
        register(_save_in_single)


def _cast_module(module: nn.Module, dtype: torch.dtype) -> None:
    """The parameters and buffers of one module; a parameter stays the same object, its optimizer knows it."""
    for param in module.parameters(recurse=False):
        if param.is_floating_point():
            param.data = param.data.to(dtype)
            if param.grad is not None:
                param.grad.data = param.grad.data.to(dtype)
    for name, buffer in module.named_buffers(recurse=False):
        if buffer.is_floating_point():
            module._buffers[name] = buffer.to(dtype)


def _cast_inputs(dtype: torch.dtype, _model: nn.Module, args: Any, settings: Any) -> Any:
    return to_dtype(args, dtype), to_dtype(settings, dtype)


def _cast_outputs(dtype: torch.dtype, _model: nn.Module, _args: Any, output: Any) -> Any:
    return to_dtype(output, dtype)


def _save_in_single(_model: nn.Module, state: dict[str, Any], _prefix: str, _metadata: Any) -> None:
    """A checkpoint in float32 can be loaded at any level."""
    for name, value in state.items():
        if isinstance(value, Tensor) and value.dtype == torch.float16:
            state[name] = value.float()

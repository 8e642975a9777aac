"""amp.initialize: models and optimizers as a level has them; and amp's own part of a checkpoint."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from torchferry.sim.shims.optim.base import on_device

from ._amp_state import LEVELS, Properties, _amp_state, maybe_print
from .casts import enable_casts, to_dtype
from .optimizer import attach
from .scaler import LossScaler, ScaleRule


def initialize(
    models: Any,
    optimizers: Any = None,
    enabled: bool = True,
    opt_level: str = "O1",
    cast_model_type: torch.dtype | None = None,
    patch_torch_functions: bool | None = None,
    keep_batchnorm_fp32: bool | str | None = None,
    master_weights: bool | None = None,
    loss_scale: float | str | None = None,
    cast_model_outputs: torch.dtype | None = None,
    num_losses: int = 1,
    verbosity: int = 1,
    dynamic_init_scale: float = 2.0**16,
    scale_growth_factor: float = 2.0,
    scale_backoff_factor: float = 0.5,
    scale_window: int = 2000,
    min_loss_scale: float | None = None,
    max_loss_scale: float = 2.0**24,
    combine_grad: bool | None = None,
    combine_ddp: bool | None = None,
    ddp_replica_count: int = 4,
    user_cast_preferred: bool | None = None,
    check_combined_tensors: bool | None = None,
) -> Any:
    """Prepare models and optimizers for a level; they come back as they were given, one or a list."""
    _amp_state.verbosity = verbosity
    if not enabled:
        _amp_state.opt_properties = Properties(enabled=False)
        return models if optimizers is None else (models, optimizers)
    if opt_level not in LEVELS:
        raise RuntimeError(f"Unexpected optimization level {opt_level}. Options are 'O0', 'O1', 'O2', 'O3'.")
    properties = LEVELS[opt_level].changed(
        cast_model_type=cast_model_type,
        patch_torch_functions=patch_torch_functions,
        keep_batchnorm_fp32=keep_batchnorm_fp32,
        master_weights=master_weights,
        loss_scale=loss_scale,
        cast_model_outputs=cast_model_outputs,
        combine_grad=combine_grad,
        combine_ddp=combine_ddp,
        ddp_replica_count=ddp_replica_count,
        user_cast_preferred=user_cast_preferred,
        check_combined_tensors=check_combined_tensors,
    )
    rule = ScaleRule(
        dynamic_init_scale,
        scale_growth_factor,
        scale_backoff_factor,
        scale_window,
        min_loss_scale,
        max_loss_scale,
    )
    _amp_state.opt_properties = properties
    _amp_state.loss_scalers = [LossScaler(properties.loss_scale, rule) for _ in range(num_losses)]
    maybe_print("amp: the level and its settings")
    for name, value in properties.options.items():
        maybe_print(f"{name:22} : {value}")
    _prepare(_listed(models), _listed(optimizers), properties)
    return models if optimizers is None else (models, optimizers)


def _prepare(models: list[Any], optimizers: list[Any], properties: Properties) -> None:
    for model in models:
        check_model(model)
    for model in models:
        cast_model(model, properties)
    for optimizer in optimizers:
        attach(optimizer, properties)
    if properties.patch_torch_functions:
        found = {param.device.type for model in models for param in model.parameters()}
        enable_casts(tuple(sorted(found)))


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def state_dict(destination: dict[str, Any] | None = None) -> dict[str, Any]:
    """Every loss's scale, and how long it has been good."""
    found = OrderedDict() if destination is None else destination
    for index, scaler in enumerate(_amp_state.loss_scalers):
        found[f"loss_scaler{index}"] = scaler.state_dict()
    return found


def load_state_dict(state_dict: dict[str, Any]) -> None:
    """Take up the scales of a checkpoint."""
    unknown = [key for key in state_dict if not key.startswith("loss_scaler")]
    if unknown:
        raise RuntimeError(f"amp.load_state_dict: unexpected keys {', '.join(unknown)}")
    scalers = _amp_state.loss_scalers
    if len(state_dict) != len(scalers):
        warnings.warn(
            f"amp.load_state_dict: the checkpoint has {len(state_dict)} loss scales, this program {len(scalers)}",
            stacklevel=2,
        )
    by_number = sorted(state_dict, key=lambda name: int(name.removeprefix("loss_scaler")))
    for name, scaler in zip(by_number, scalers, strict=False):
        scaler.load_state_dict(state_dict[name])


def check_model(model: nn.Module) -> None:
    """Refuse a model that is wrapped, in half precision already, or not on the device."""
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
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

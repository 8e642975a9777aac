"""The optimization levels, and what amp.initialize set up in this process; programs read the loss scale from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
import torch.distributed as dist

from .scaler import LossScaler


@dataclass(frozen=True)
class Properties:
    """How a level computes."""

    enabled: bool = True
    opt_level: str = "O1"
    cast_model_type: torch.dtype | None = None
    patch_torch_functions: bool = False
    keep_batchnorm_fp32: bool | None = None
    master_weights: bool | None = None
    loss_scale: float | str = "dynamic"
    cast_model_outputs: torch.dtype | None = None
    combine_grad: bool | None = None
    combine_ddp: bool | None = None
    ddp_replica_count: int = 4
    user_cast_preferred: bool | None = None
    check_combined_tensors: bool | None = None

    def changed(self, **overrides: Any) -> Properties:
        """The same level with settings of the program's own; None means: as the level has it."""
        given = {name: value for name, value in overrides.items() if value is not None}
        for name in ("keep_batchnorm_fp32", "master_weights"):
            if isinstance(given.get(name), str):  # programs pass command-line strings
                if given[name] not in ("True", "False"):
                    raise RuntimeError(f"amp.initialize: {name} must be True or False, not '{given[name]}'")
                given[name] = given[name] == "True"
        if "loss_scale" in given and given["loss_scale"] != "dynamic":
            given["loss_scale"] = float(given["loss_scale"])
        self._check(given)
        return replace(self, **given)

    def _check(self, given: Mapping[str, Any]) -> None:
        if self.opt_level == "O1":
            for name, why in _NOT_WITH_O1.items():
                if given.get(name) not in (None, False):
                    raise RuntimeError(f"amp.initialize: {name} can't be set with opt_level='O1': {why}")
        elif given.get("patch_torch_functions") or given.get("user_cast_preferred"):
            raise RuntimeError("amp.initialize: casts around torch functions work only with opt_level='O1'")
        if given.get("combine_grad") and self.opt_level not in ("O1", "O2"):
            raise RuntimeError("amp.initialize: combine_grad=True works only with opt_level='O1' or 'O2'")
        if given.get("combine_ddp") and not given.get("combine_grad"):
            raise RuntimeError("amp.initialize: combine_ddp=True needs combine_grad=True")

    @property
    def options(self) -> dict[str, Any]:
        """Every setting by name; programs log it."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}


_NOT_WITH_O1 = {
    "cast_model_type": "the model stays in float32, its operators are cast",
    "keep_batchnorm_fp32": "batch normalisation runs in float32 anyway",
    "master_weights": "the weights themselves are in float32",
}


LEVELS: Mapping[str, Properties] = {
    "O0": Properties(opt_level="O0", cast_model_type=torch.float32, master_weights=False, loss_scale=1.0),
    "O1": Properties(opt_level="O1", patch_torch_functions=True),
    "O2": Properties(
        opt_level="O2", cast_model_type=torch.float16, keep_batchnorm_fp32=True, master_weights=True
    ),
    "O3": Properties(
        opt_level="O3",
        cast_model_type=torch.float16,
        keep_batchnorm_fp32=False,
        master_weights=False,
        loss_scale=1.0,
    ),
}


@dataclass
class AmpState:
    """The settings, one scaler for each loss, and the device types whose operators are cast (O1)."""

    opt_properties: Properties = field(default_factory=lambda: Properties(enabled=False))
    loss_scalers: list[LossScaler] = field(default_factory=list)
    verbosity: int = 1
    cast_devices: tuple[str, ...] = ()


_amp_state = AmpState()


def master_params(optimizer: torch.optim.Optimizer) -> Iterator[Any]:
    """The parameters that the optimizer steps: float32 masters where there are some."""
    for group in optimizer.param_groups:
        yield from group["params"]


def maybe_print(message: str) -> None:
    """Print on the first process, unless the program asked for silence."""
    is_first = not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0
    if _amp_state.verbosity > 0 and is_first:
        print(message)

"""The optimization levels, and which of their settings may be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

_FLAGS = {"True": True, "False": False}  # both spellings are taken: programs pass command-line strings


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
            if isinstance(given.get(name), str):
                given[name] = _flag(name, given[name])
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
            raise RuntimeError("amp.initialize: casts around torch's functions go with opt_level='O1' alone")
        if given.get("combine_grad") and self.opt_level not in ("O1", "O2"):
            raise RuntimeError("amp.initialize: combine_grad=True goes with opt_level='O1' or 'O2' alone")
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


def _flag(name: str, value: str) -> bool:
    if value not in _FLAGS:
        raise RuntimeError(f"amp.initialize: {name} must be True or False, not '{value}'")
    return _FLAGS[value]


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

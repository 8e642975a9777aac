"""The former name of torch_mlu.utils.gpu_migration."""

import warnings

from ..gpu_migration import migration as transfer

__all__ = ["transfer"]

warnings.warn(
    "torch_mlu.utils.model_transfer is the old name of torch_mlu.utils.gpu_migration",
    FutureWarning,
    stacklevel=2,
)

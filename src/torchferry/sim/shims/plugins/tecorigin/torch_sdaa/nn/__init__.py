"""torch_sdaa.nn."""

from torch.nn import SyncBatchNorm

__all__ = ["SyncBatchNorm"]

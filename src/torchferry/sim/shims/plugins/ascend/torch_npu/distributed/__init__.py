"""torch_npu.distributed: the question that programs ask before they choose a backend."""

import torch.distributed

__all__ = ["is_hccl_available"]


def is_hccl_available() -> bool:
    """Whether process groups over hccl can be made."""
    return torch.distributed.is_available()

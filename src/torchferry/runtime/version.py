"""torch.version.cuda, for libraries that will not look at a device before they have seen it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.backends import cudnn

from torchferry.runtime.absent import NOT_HERE, absent
from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import Target

# torch._dynamo.reset, for one, imports a module that takes these classes.
_TAKEN_WHERE_CUDA_IS_BUILT = ("_cuda_CUDAAllocator_AllocatorState",)


def changes(target: Target) -> Iterator[Change]:
    """The version, if the user asked for one; that CUDA is built in, which it stands for; that cuDNN has no say."""
    said = target.settings.cuda_version
    if said:
        yield Patch("torch.version.cuda", torch.version, "cuda", said, f'"{said}"')
    yield Patch("torch.backends.cuda.is_built", torch.backends.cuda, "is_built", lambda: True, "true")
    # Recurrent layers ask it for every weight that is on a GPU, and without cuDNN it warns.
    yield Patch("torch.backends.cudnn.is_acceptable", cudnn, "is_acceptable", lambda tensor: False, "false")
    for name in _TAKEN_WHERE_CUDA_IS_BUILT:
        if not hasattr(torch._C, name):
            full = f"torch._C.{name}"
            yield Patch(full, torch._C, name, absent(full, object, target), NOT_HERE)

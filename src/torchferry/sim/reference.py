"""What the compiled half does for the reference of a proof, a process in which every device is the CPU."""

from __future__ import annotations

from torchferry.sim import build, native
from torchferry.sim.placement import NativePlacement


def compute_as_cuda() -> None:
    """All of it: what the original of a proof needs to compute on the CPU what a device computes."""
    use_cuda_autocast_policies()
    add_sync_batch_norm()
    compute_half_in_single()


def placement() -> NativePlacement:
    """What keeps account of which tensors would be on a device."""
    return NativePlacement(build.library_path())


def use_cuda_autocast_policies() -> None:
    """Let torch.autocast("cpu") cast as CUDA's does in this process: a device computes under those policies, too.

    The library is loaded, but no device is named or registered with torch: the process stays one with a CPU only.
    """
    native.load(build.library_path())
    native.use_cuda_autocast_policies()


def add_sync_batch_norm() -> None:
    """Give the CPU the operators of SyncBatchNorm, which PyTorch has for CUDA only; they are the device's."""
    native.load(build.library_path())
    native.add_sync_batch_norm()


def compute_half_in_single() -> None:
    """Compute products and convolutions in half precision as the device does: in single precision, rounded."""
    native.load(build.library_path())
    native.compute_half_in_single()

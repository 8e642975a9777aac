// For a process in which the CPU stands for CUDA's devices, the reference of a proof. Nothing here needs a device.
#pragma once

namespace ferry {

// Let torch.autocast("cpu") cast as CUDA does: a device computes under CUDA's policies, too.
void use_cuda_autocast_policies();

// Give the CPU the operators of SyncBatchNorm, which PyTorch has for CUDA only.
void add_sync_batch_norm();

} // namespace ferry

// For a process in which the CPU stands for CUDA's devices, the reference of a proof. Nothing here needs a device.
#pragma once

#include <cstdint>

namespace ferry {

// Let torch.autocast("cpu") cast as CUDA does: a device computes under CUDA's policies, too.
void use_cuda_autocast_policies();

// Give the CPU the operators of SyncBatchNorm, which PyTorch has for CUDA only.
void add_sync_batch_norm();

// Keep account of what would be in the memory of a CUDA device, from here on or no longer.
void watch_places(bool on);

// The device that "cuda" without a number means in this thread.
void set_current_place(int64_t index);

} // namespace ferry

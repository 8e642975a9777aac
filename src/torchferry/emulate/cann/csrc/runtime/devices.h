// The machine: how many devices there are, which one a thread uses, what they are called.
#pragma once

#include "memory.h"

namespace cann {

int device_count();
uint64_t memory_limit(); // of each device
int current_device();
// Whether anything has been allocated on a device by this process.
bool is_in_use(int device);

} // namespace cann

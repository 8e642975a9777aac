// Which devices there are, which one is current, their streams.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace ferry {

constexpr int kMaxDevices = 64;

c10::DeviceIndex device_count();
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex device);

// Raise the error that vendors' runtimes give for a device that is not there.
void check_device_index(int64_t device);

} // namespace ferry

// Which of the machine's devices this process sees: the vendor's variable (its CUDA_VISIBLE_DEVICES) says so.
#pragma once

#include <cstdint>
#include <string>

namespace ferry {

// How many devices the machine has, and the variable that limits them; "" when the vendor has none.
void set_machine(int64_t devices, std::string variable);

// How many devices the process sees. The variable may still change it until the first use of a device.
int visible_devices();

// From here on the number stays: a runtime library reads its variable once.
void begin_use();

} // namespace ferry

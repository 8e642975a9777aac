// Random numbers of the simulated devices: each device has an engine of the CPU's kind, so that the same seed gives
// the numbers that the CPU would draw. With shared randomness it is the very engine of the CPU.
#pragma once

#include <ATen/core/Generator.h>

namespace ferry {

at::Generator make_generator(c10::DeviceIndex device);

// Whether the devices' default generators are the host's: a program then draws one sequence on host and devices, as
// it does where every device is the CPU. Before the first use of a default generator.
void share_randomness(bool shared);
const at::Generator& default_generator(c10::DeviceIndex device);

// The host generator inside a device generator: what a host kernel draws from.
at::Generator host_generator(const at::Generator& device_generator);

// For operators that draw random numbers and take no generator: while this lives, the process-wide host generator
// continues the device's sequence; afterwards each has its own again.
class LendEngine {
 public:
  explicit LendEngine(c10::DeviceIndex device);
  ~LendEngine();
  LendEngine(const LendEngine&) = delete;
  LendEngine& operator=(const LendEngine&) = delete;

 private:
  void exchange();
  at::Generator device_;
};

} // namespace ferry

// What the plugin asks the driver for: whether the profiler's times are a counter's of the CPU.
#include <cstdint>

extern "C" {

// Drivers before 7.19.5 have no such counter; the plugin then takes the clock that this profiler has.
int32_t halGetAPIVersion(int32_t* version) {
  *version = 0x071900;
  return 0;
}

} // extern "C"

// A stream that does nothing for some cycles, of a card of 1 GHz.
#include "native.h"

#include <chrono>
#include <thread>

OPERATOR(aclnnSleep) {
  for (const int64_t cycles : a[0].toIntVector()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(cycles));
  }
}

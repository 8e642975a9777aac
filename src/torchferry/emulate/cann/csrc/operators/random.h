// Where operators draw random numbers from.
#pragma once

namespace cann {

// Whether they draw what the CPU would draw at that point of the program.
bool shares_randomness();

} // namespace cann

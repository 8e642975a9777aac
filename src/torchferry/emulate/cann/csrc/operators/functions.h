// The two phases of an operator function: the first keeps the arguments, the second puts the computing on a stream.
#pragma once

#include "values.h"

#include <atomic>
#include <vector>

namespace cann {

using Arguments = std::vector<IValue>;
using Compute = void (*)(Arguments& arguments);

struct Function {
  const char* name;
  Compute compute;
  bool draws; // random numbers
  std::atomic<uint64_t> calls{0};

  Function(const char* name, Compute compute, bool draws);
};

// The first phase: `executor` is what the second is called with.
int plan(Function& function, Arguments arguments, uint64_t* workspace_bytes, void** executor);

// The second phase.
int launch(void* executor, void* stream);

} // namespace cann

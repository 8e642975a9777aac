// Operators that the plugin calls the old way: by a name, with tensors and named attributes.
#pragma once

#include "functions.h"

#include <vector>

namespace cann {

// What the tables say of one: its arguments are the list of inputs, the list of outputs, and these attributes.
struct NamedOperator {
  NamedOperator(const char* name, Compute compute, std::vector<const char*> attributes);

  Function function;
  std::vector<const char*> attributes;
};

} // namespace cann

// What one pass over a tensor tells.
#pragma once

#include "elements.h"

namespace ferry {

// Of some elements: counts, and sums over those that are finite.
struct Summary {
  uint64_t count = 0, nans = 0, infinities = 0, zeros = 0;
  double minimum = INFINITY, maximum = -INFINITY;
  Scaled sum, squares;

  void add(const Summary& other);
};

// Of up to kBlock values.
Summary summary_of(const float* values, size_t count);
Summary summary_of(const double* values, size_t count);
// Of up to kBlock elements.
Summary summary_of(const void* raw, int32_t dtype, size_t count);

}  // namespace ferry

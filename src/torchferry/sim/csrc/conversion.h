// A call computed in another dtype: its arguments are converted, and what comes back.
#pragma once

#include "operators.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>

namespace ferry {

// The dtype that the half precisions are computed in where they have no kernel, or a slow one.
std::optional<at::ScalarType> single_precision_of(at::ScalarType dtype);

struct Conversion {
  at::ScalarType from;
  at::ScalarType to;
};

// Call `invoke` on a stack of host tensors in `to` instead of `from`.
void call_converted(
    const Operator& op, torch::jit::Stack& stack, size_t begin, Conversion conversion, const std::function<void()>& invoke);

} // namespace ferry

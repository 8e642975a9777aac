// Tensors that may be missing among the arguments of an operator function.
#pragma once

#include "native.h"
#include "script.h"

namespace cann {

// Undefined where it is missing.
inline at::Tensor tensor_or_nothing(const IValue& given) {
  return given.isNone() ? at::Tensor() : given.toTensor();
}

} // namespace cann

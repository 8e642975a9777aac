// How an operator function is written in C++: OPERATOR(aclnnName) { ... }, its arguments `a` in the order of its interface.
#pragma once

#include "script.h"

#define OPERATOR(name) void compute_##name(cann::Arguments& a)

namespace cann {

// Into the memory of an argument; nothing where the caller does not want the result.
inline void write_tensor(const IValue& target, const at::Tensor& result) {
  script::write(target, result);
}

} // namespace cann

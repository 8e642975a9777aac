// Calls of ATen's operators by name, with values that fit their schemas or can be made to.
#pragma once

#include "values.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <initializer_list>
#include <utility>

namespace cann {

class Aten {
 public:
  Aten(const char* name, const char* overload);

  // What it returns: nothing, a value, or a tuple.
  IValue operator()(std::initializer_list<IValue> positional, std::initializer_list<std::pair<const char*, IValue>> named = {}) const;

 private:
  c10::OperatorHandle handle_;
  bool half_in_single_; // products and convolutions: in half precision the CPU is slow, or has no kernel
};

} // namespace cann

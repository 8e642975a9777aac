#include "saturation.h"

#include "operators.h"

#include <ATen/Functions.h>

#include <array>
#include <atomic>

namespace ferry {
namespace {

std::array<std::atomic<bool>, static_cast<size_t>(at::ScalarType::NumOptions)> saturating;
std::atomic<bool> any{false};
std::atomic<bool> overflowed{false};

} // namespace

void set_saturation(at::ScalarType dtype) {
  saturating[static_cast<size_t>(dtype)] = true;
  any = true;
}

bool is_saturating() {
  return any.load(std::memory_order_relaxed);
}

void saturate(const at::Tensor& host) {
  if (!is_saturating() || !host.defined() || !saturating[static_cast<size_t>(host.scalar_type())] || !limits_on() ||
      at::isfinite(host).all().item<bool>()) {
    return;
  }
  overflowed = true;
  at::Tensor result = host;
  result.nan_to_num_(/*nan=*/0.0);
}

bool take_overflow() {
  return overflowed.exchange(false);
}

} // namespace ferry

#include "builtins.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <numeric>

#include "../runtime/error.h"

namespace cann::builtins {
namespace {

using at::Tensor;

constexpr int64_t kBits = 8;

// What each bit of a byte counts.
Tensor weights() {
  return at::bitwise_left_shift(at::ones({kBits}, at::kByte), at::arange(kBits, at::kByte));
}

} // namespace

IValue sizes(const IValue& tensor) {
  return tensor.toTensor().sizes().vec();
}

IValue size(const IValue& tensor, const IValue& dimension) {
  return tensor.toTensor().size(dimension.toInt());
}

IValue dim(const IValue& tensor) {
  return tensor.toTensor().dim();
}

IValue numel(const IValue& tensor) {
  return tensor.toTensor().numel();
}

IValue dtype(const IValue& tensor) {
  return static_cast<int64_t>(tensor.toTensor().scalar_type());
}

IValue is_floating(const IValue& tensor) {
  return tensor.isTensor() ? tensor.toTensor().is_floating_point() : tensor.isDouble();
}

IValue is_complex(const IValue& tensor) {
  return tensor.isTensor() ? tensor.toTensor().is_complex() : tensor.isComplexDouble();
}

IValue aten_dtype(const IValue& acl_dtype) {
  return value_of_dtype(static_cast<int>(acl_dtype.toInt()));
}

IValue length(const IValue& list) {
  return static_cast<int64_t>(list.isNone() ? 0 : list.toList().size());
}

IValue range(const IValue& count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count.toInt()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

IValue concatenated(const IValue& lists) {
  return at::cat(lists.toTensorVector());
}

IValue number(const IValue& tensor) {
  return tensor.toTensor().item();
}

IValue packed_bits(const IValue& mask) {
  const Tensor flat = mask.toTensor().reshape({-1}).to(at::kByte);
  const int64_t bytes = (flat.numel() + kBits - 1) / kBits;
  const Tensor padded = at::constant_pad_nd(flat, {0, bytes * kBits - flat.numel()}).view({bytes, kBits});
  return at::mul(padded, weights()).sum(1, false, at::kByte);
}

IValue unpacked_bits(const IValue& bytes, const IValue& sizes) {
  const auto shape = sizes.toIntVector();
  const int64_t count = c10::multiply_integers(shape);
  const Tensor used = bytes.toTensor().reshape({-1}).narrow(0, 0, (count + kBits - 1) / kBits);
  const Tensor bits = at::bitwise_and(used.unsqueeze(1), weights());
  return bits.ne(0).reshape({-1}).narrow(0, 0, count).view(shape);
}

IValue refuse(const IValue& reason) {
  throw Failure(207000, reason.toStringRef()); // ACL_ERROR_RT_FEATURE_NOT_SUPPORT
}

} // namespace cann::builtins

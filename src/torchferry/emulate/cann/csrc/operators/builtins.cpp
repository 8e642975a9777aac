#include "builtins.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <numeric>

#include "../runtime/error.h"

namespace cann::builtins {
namespace {

using at::Tensor;

constexpr int64_t kBits = 8;

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
  const Tensor flat = mask.toTensor().reshape({-1}).to(at::kBool);
  const int64_t count = flat.numel();
  Tensor bytes = at::zeros({(count + kBits - 1) / kBits}, at::kByte);
  const bool* kept = flat.const_data_ptr<bool>();
  auto* packed = bytes.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    packed[i / kBits] |= static_cast<uint8_t>(static_cast<unsigned>(kept[i]) << (i % kBits));
  }
  return bytes;
}

IValue unpacked_bits(const IValue& bytes, const IValue& sizes) {
  const Tensor flat = bytes.toTensor().reshape({-1});
  const Tensor bits = at::empty(sizes.toIntVector(), at::kBool);
  const int64_t count = bits.numel();
  TORCH_CHECK(flat.numel() * kBits >= count, "there are ", flat.numel(), " bytes of bits for ", count, " elements");
  const auto* packed = static_cast<const uint8_t*>(flat.const_data_ptr());
  bool* kept = bits.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < count; ++i) {
    kept[i] = ((packed[i / kBits] >> (i % kBits)) & 1U) != 0;
  }
  return bits;
}

IValue refuse(const IValue& reason) {
  // Not as a feature that the runtime lacks: of those the plugin warns, and goes on.
  TORCH_CHECK_NOT_IMPLEMENTED(false, reason.toStringRef());
}

} // namespace cann::builtins

#include "reduction.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace collectives {
namespace {

// How a type is kept in memory and in which one it is computed.
template <typename T>
struct Plain {
  using Stored = T;
  using Computed = T;

  static T load(T value) {
    return value;
  }
  static T store(T value) {
    return value;
  }
};

struct BFloat16 {
  using Stored = uint16_t;
  using Computed = float;

  static float load(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }

  static uint16_t store(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    if (value != value) {
      return static_cast<uint16_t>(bits >> 16 | 0x40);
    }
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

struct Float16 {
  using Stored = uint16_t;
  using Computed = float;

  static float load(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t rest = bits & 0x7fff;
    if (rest >= 0x7c00) { // infinite, not a number
      return std::bit_cast<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    }
    // The exponent is moved by a product, which is exact and knows the subnormal ones.
    const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
  }

  static uint16_t store(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
      return sign | 0x7e00;
    }
    if (magnitude >= 0x477ff000) { // rounds beyond 65504
      return sign | 0x7c00;
    }
    if (magnitude < 0x38800000) { // subnormal: the sum leaves the rounded mantissa in the last bits
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
    }
    const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000;
    return static_cast<uint16_t>(sign | rounded >> 13);
  }
};

template <typename T>
T combined(HcclReduceOp op, T value, T folded) {
  switch (op) {
    case HCCL_REDUCE_MAX:
      return std::max(value, folded);
    case HCCL_REDUCE_MIN:
      return std::min(value, folded);
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) { // wraps, as it may not where it is signed
    using Wide = std::make_unsigned_t<decltype(T{} + T{})>;
    const Wide left = static_cast<Wide>(value), right = static_cast<Wide>(folded);
    return static_cast<T>(op == HCCL_REDUCE_SUM ? left + right : left * right);
  } else {
    return op == HCCL_REDUCE_SUM ? value + folded : value * folded;
  }
}

template <typename Type, HcclReduceOp op>
void fold_as(void* result, const std::vector<const void*>& inputs, size_t elements) {
  using Stored = typename Type::Stored;
  constexpr size_t kBlock = 1024; // read before it is written: the result may be an input
  typename Type::Computed folded[kBlock];
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t count = std::min(kBlock, elements - begin);
    const auto* first = static_cast<const Stored*>(inputs.front()) + begin;
    for (size_t i = 0; i < count; ++i) {
      folded[i] = Type::load(first[i]);
    }
    for (size_t input = 1; input < inputs.size(); ++input) {
      const auto* values = static_cast<const Stored*>(inputs[input]) + begin;
      for (size_t i = 0; i < count; ++i) {
        folded[i] = combined(op, Type::load(values[i]), folded[i]);
      }
    }
    auto* out = static_cast<Stored*>(result) + begin;
    for (size_t i = 0; i < count; ++i) {
      out[i] = Type::store(folded[i]);
    }
  }
}

template <typename Type>
void fold_with(HcclReduceOp op, void* result, const std::vector<const void*>& inputs, size_t elements) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return fold_as<Type, HCCL_REDUCE_SUM>(result, inputs, elements);
    case HCCL_REDUCE_PROD:
      return fold_as<Type, HCCL_REDUCE_PROD>(result, inputs, elements);
    case HCCL_REDUCE_MAX:
      return fold_as<Type, HCCL_REDUCE_MAX>(result, inputs, elements);
    default:
      return fold_as<Type, HCCL_REDUCE_MIN>(result, inputs, elements);
  }
}

size_t rounded_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace

void fold(HcclDataType type, HcclReduceOp op, void* result, const std::vector<const void*>& inputs, size_t elements) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
      return fold_with<Plain<int8_t>>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_INT16:
      return fold_with<Plain<int16_t>>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_INT32:
      return fold_with<Plain<int32_t>>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_INT64:
      return fold_with<Plain<int64_t>>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_UINT64:
      return fold_with<Plain<uint64_t>>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_FP16:
      return fold_with<Float16>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_BFP16:
      return fold_with<BFloat16>(op, result, inputs, elements);
    case HCCL_DATA_TYPE_FP64:
      return fold_with<Plain<double>>(op, result, inputs, elements);
    default:
      return fold_with<Plain<float>>(op, result, inputs, elements); // what is no reduction's type was refused before
  }
}

std::vector<uint32_t> ring_order(uint32_t owner, uint32_t ranks) {
  std::vector<uint32_t> order;
  for (uint32_t back = 1; back <= ranks; ++back) {
    order.push_back((owner + ranks - back % ranks) % ranks);
  }
  return order;
}

size_t elements_of_owner(size_t elements, size_t element_bytes, uint32_t ranks) {
  constexpr size_t kLargestSegment = 1024 * 1024; // of Gloo's ring, in bytes
  const size_t bytes = elements * element_bytes;
  const size_t largest = element_bytes * std::max<size_t>(1, kLargestSegment / element_bytes);
  const size_t segments = rounded_up(std::max<size_t>((bytes + largest - 1) / largest, ranks * 2), ranks);
  return rounded_up((bytes + segments - 1) / segments, element_bytes) / element_bytes * (segments / ranks);
}

} // namespace collectives

// Decoding and encoding of elements, a block at a time.
#include "elements.h"

namespace ferry {

const Float8Table kFloat8;

namespace {

template <class Real>
void decode_small(const void* raw, int32_t dtype, size_t count, Real* values) {
  const char* bytes = static_cast<const char*>(raw);
  switch (dtype) {
    case kBool:
      for (size_t i = 0; i < count; ++i) values[i] = bytes[i] ? Real{1} : Real{0};
      break;
    case kUInt8: convert<uint8_t>(raw, count, values); break;
    case kInt8: convert<int8_t>(raw, count, values); break;
    case kInt16: convert<int16_t>(raw, count, values); break;
    case kUInt16: convert<uint16_t>(raw, count, values); break;
    case kFloat16:
      for (size_t i = 0; i < count; ++i) values[i] = from_half(read<uint16_t>(bytes + 2 * i));
      break;
    case kBFloat16:
      for (size_t i = 0; i < count; ++i)
        values[i] = as_float(static_cast<uint32_t>(read<uint16_t>(bytes + 2 * i)) << 16);
      break;
    default: {
      const float* table = kFloat8.values[dtype - kFloat8E4M3FN];
      for (size_t i = 0; i < count; ++i) values[i] = table[static_cast<uint8_t>(bytes[i])];
    }
  }
}

// Round to nearest, ties to even, by dropping the lower bits of a float.
uint16_t to_bfloat16(float value) {
  const uint32_t bits = as_bits(value);
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t to_half(float value) {
  const uint32_t bits = as_bits(value), sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7e00;
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to 65536 or more
  if (magnitude < 0x38800000) {  // denormal: 0.5 + x has x's last place where a denormal half has it
    const uint32_t shifted = as_bits(as_float(magnitude) + 0.5f) - 0x3f000000;
    return static_cast<uint16_t>(sign | shifted);
  }
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

// The nearest of the finite values, with the even one at ties; above the largest, the largest.
uint8_t to_float8(float value, int32_t dtype) {
  const float* table = kFloat8.values[dtype - kFloat8E4M3FN];
  int low = 0, high = 0x7f;
  while (!(table[high] <= FLT_MAX)) --high;
  const float size = std::fabs(value);
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (table[middle] <= size ? low : high) = middle;
  }
  const float below = size - table[low], above = table[high] - size;
  const int nearest = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<uint8_t>(nearest | (value < 0 && nearest ? 0x80 : 0));
}

}  // namespace

void decode(const void* raw, int32_t dtype, size_t count, float* values) {
  if (dtype == kFloat32)
    std::memcpy(values, raw, count * sizeof(float));
  else
    decode_small(raw, dtype, count, values);
}

void decode(const void* raw, int32_t dtype, size_t count, double* values) {
  switch (dtype) {
    case kInt32: return convert<int32_t>(raw, count, values);
    case kUInt32: return convert<uint32_t>(raw, count, values);
    case kInt64: return convert<int64_t>(raw, count, values);
    case kUInt64: return convert<uint64_t>(raw, count, values);
    case kFloat32: return convert<float>(raw, count, values);
    case kFloat64: return convert<double>(raw, count, values);
    default: return decode_small(raw, dtype, count, values);
  }
}

void encode(const double* values, size_t count, int32_t dtype, void* raw) {
  char* bytes = static_cast<char*>(raw);
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(values[i]);
    if (dtype == kFloat64) {
      std::memcpy(bytes + 8 * i, values + i, 8);
    } else if (dtype == kFloat32) {
      std::memcpy(bytes + 4 * i, &value, 4);
    } else if (dtype == kFloat16 || dtype == kBFloat16) {
      const uint16_t half = dtype == kFloat16 ? to_half(value) : to_bfloat16(value);
      std::memcpy(bytes + 2 * i, &half, 2);
    } else {
      bytes[i] = static_cast<char>(to_float8(value, dtype));
    }
  }
}

}  // namespace ferry

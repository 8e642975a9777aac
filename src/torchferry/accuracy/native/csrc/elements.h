// The sorts of elements a tensor can have, and their values as float or double.
#pragma once

#include "lanes.h"

namespace ferry {

// In the order of DTYPES in library.py.
enum Dtype : int32_t {
  kBool, kUInt8, kInt8, kFloat8E4M3FN, kFloat8E5M2, kFloat8E4M3FNUZ, kFloat8E5M2FNUZ, kInt16, kUInt16,
  kFloat16, kBFloat16, kInt32, kUInt32, kFloat32, kInt64, kUInt64, kFloat64,
};

inline size_t size_of(int32_t dtype) {
  return dtype <= kFloat8E5M2FNUZ ? 1 : dtype <= kBFloat16 ? 2 : dtype <= kFloat32 ? 4 : 8;
}
inline bool is_float8(int32_t dtype) { return dtype >= kFloat8E4M3FN && dtype <= kFloat8E5M2FNUZ; }
inline bool is_float(int32_t dtype) {
  return is_float8(dtype) || dtype == kFloat16 || dtype == kBFloat16 || dtype == kFloat32 || dtype == kFloat64;
}
// Whether a float does not hold every value.
inline bool needs_double(int32_t dtype) {
  return dtype == kInt32 || dtype == kUInt32 || dtype >= kInt64;
}

inline float as_float(uint32_t bits) { return read<float>(&bits); }
inline uint32_t as_bits(float value) { return read<uint32_t>(&value); }

inline float from_half(uint16_t half) {
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
  const uint32_t special = magnitude >= (0x7c00u << 13) ? 0x7f800000u : 0;
  const uint32_t value = as_bits(as_float(magnitude) * 0x1p112f) | special;
  return as_float(value | static_cast<uint32_t>(half & 0x8000) << 16);
}

inline float from_float8(uint8_t bits, int32_t dtype) {
  const bool is_wide = dtype == kFloat8E5M2 || dtype == kFloat8E5M2FNUZ;
  const bool has_no_negative_zero = dtype == kFloat8E4M3FNUZ || dtype == kFloat8E5M2FNUZ;
  const int mantissa_bits = is_wide ? 2 : 3;
  const int bias = (is_wide ? 15 : 7) + has_no_negative_zero;
  const int magnitude = bits & 0x7f;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  if (has_no_negative_zero ? bits == 0x80 : magnitude > (is_wide ? 0x7c : 0x7e)) return NAN;
  if (dtype == kFloat8E5M2 && magnitude == 0x7c) return sign * INFINITY;
  const int exponent = magnitude >> mantissa_bits;
  const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
  return sign * std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits);
}

struct Float8Table {
  float values[4][256];
  Float8Table() {
    for (int32_t dtype = kFloat8E4M3FN; dtype <= kFloat8E5M2FNUZ; ++dtype)
      for (int bits = 0; bits < 256; ++bits)
        values[dtype - kFloat8E4M3FN][bits] = from_float8(static_cast<uint8_t>(bits), dtype);
  }
};
extern const Float8Table kFloat8;

template <class T, class Real>
inline void convert(const void* raw, size_t count, Real* values) {
  const char* bytes = static_cast<const char*>(raw);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<Real>(read<T>(bytes + i * sizeof(T)));
}

// Small elements as float, all exactly.
void decode(const void* raw, int32_t dtype, size_t count, float* values);
// Any element as double; 64-bit integers are rounded.
void decode(const void* raw, int32_t dtype, size_t count, double* values);
// Values as elements of a type of floats, rounded to nearest.
void encode(const double* values, size_t count, int32_t dtype, void* raw);

}  // namespace ferry

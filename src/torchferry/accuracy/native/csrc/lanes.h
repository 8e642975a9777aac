// Vectors of the machine, and sums that neither overflow nor depend on how wide its vectors are.
//
// Numbers lie in columns of eight; a vector holds all of a column or a part of it. Each place in the column has sums
// of its own, and these are added up in one order, whatever the width.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ferry {

#if defined(__AVX512F__)
constexpr size_t kWidth = 64;  // bytes
#elif defined(__AVX2__)
constexpr size_t kWidth = 32;
#else
constexpr size_t kWidth = 16;
#endif
constexpr size_t kColumn = 8;
constexpr size_t kLanes = kWidth / 8;
constexpr size_t kParts = kColumn / kLanes;
constexpr size_t kBlock = 2048;  // elements; two blocks, decoded to double, stay in a core's nearest cache

typedef double Doubles __attribute__((vector_size(kWidth)));
typedef int64_t Integers __attribute__((vector_size(kWidth)));
typedef uint64_t Words __attribute__((vector_size(kWidth)));

// A program may have told its CPU to take denormal numbers for 0 (torch.set_flush_denormal); we must see them.
class ExactArithmetic {
 public:
#if defined(__SSE2__)
  ExactArithmetic() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~ExactArithmetic() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  ExactArithmetic() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~ExactArithmetic() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#else
  ExactArithmetic() {}
#endif
  ExactArithmetic(const ExactArithmetic&) = delete;
  ExactArithmetic& operator=(const ExactArithmetic&) = delete;
};

template <class T>
inline T read(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

inline Doubles all(double value) { return value - Doubles{}; }

inline Integers bits_of(Doubles x) { return (Integers)x; }
inline Doubles where(Integers mask, Doubles x) { return (Doubles)(mask & bits_of(x)); }  // 0 elsewhere
inline Doubles magnitude(Doubles x) { return (Doubles)(bits_of(x) & INT64_MAX); }
inline Doubles smaller(Doubles x, Doubles y) { return x < y ? x : y; }
inline Doubles larger(Doubles x, Doubles y) { return x > y ? x : y; }
inline Integers is_finite(Doubles x) { return magnitude(x) <= DBL_MAX; }

// Elements of any sort, as many as fill a vector of the other sort. Conversions that old machines lack are done by hand.
template <class Vector, class T>
inline Vector load_as(const T* address) {
  typedef T Narrow __attribute__((vector_size(sizeof(T) * kLanes)));
  return __builtin_convertvector(read<Narrow>(address), Vector);
}

// The upper and the lower half, each put into the last bits of a double with a known exponent.
inline Doubles as_doubles(Words x) {
  const Doubles upper = (Doubles)((x >> 32) | 0x4530000000000000) - 0x1.00000001p84;
  return upper + (Doubles)((x & 0xffffffff) | 0x4330000000000000);
}

// Each word's upper half times its lower half. Compilers do not see that a short multiplication will do.
inline Words product_of_halves(Words x) {
#if defined(__AVX512F__)
  return (Words)_mm512_mul_epu32((__m512i)x, (__m512i)(x >> 32));
#elif defined(__AVX2__)
  return (Words)_mm256_mul_epu32((__m256i)x, (__m256i)(x >> 32));
#elif defined(__SSE2__)
  return (Words)_mm_mul_epu32((__m128i)x, (__m128i)(x >> 32));
#else
  return (x & 0xffffffff) * (x >> 32);
#endif
}

// All sums of a column: those of its parts, and then of its places, halves first.
template <class Sums, class Add>
inline Sums over_parts(Add add) {
  Sums parts[kParts];
  for (size_t part = 0; part < kParts; ++part) add(parts[part], part * kLanes);
  for (size_t half = kParts / 2; half > 0; half /= 2)
    for (size_t part = 0; part < half; ++part) parts[part].merge(parts[part + half]);
  return parts[0];
}

inline double sum_of(Doubles x) {
  double sums[kLanes];
  std::memcpy(sums, &x, sizeof(sums));
  for (size_t half = kLanes / 2; half > 0; half /= 2)
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}
inline int64_t sum_of(Integers x) {
  int64_t sum = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += x[lane];
  return sum;
}
inline double largest_of(Doubles x) {
  double found = x[0];
  for (size_t lane = 1; lane < kLanes; ++lane) found = x[lane] > found ? x[lane] : found;
  return found;
}
inline double smallest_of(Doubles x) {
  double found = x[0];
  for (size_t lane = 1; lane < kLanes; ++lane) found = x[lane] < found ? x[lane] : found;
  return found;
}

// value * 2^exponent, so that squares of 1e300 and of 1e-300 can be added up.
struct Scaled {
  double value = 0;
  int64_t exponent = 0;

  void add(double other, int64_t other_exponent) {
    if (other == 0) return;
    if (value == 0) {
      value = other;
      exponent = other_exponent;
    } else if (other_exponent <= exponent) {
      value += std::ldexp(other, static_cast<int>(other_exponent - exponent));
    } else {
      value = other + std::ldexp(value, static_cast<int>(exponent - other_exponent));
      exponent = other_exponent;
    }
  }
};

// Whether a block's sum of squares has lost nothing to overflow or underflow, given the largest magnitude in it.
constexpr double kLargestSquares = 0x1p900, kSmallestSquares = 0x1p-700;
inline bool is_sound(double squares) { return squares >= kSmallestSquares && squares <= kLargestSquares; }

// The power of two to divide by before squaring: 0 where plain squares will do.
inline int64_t exponent_for(double largest) {
  if (largest == 0 || (largest > 0x1p-340 && largest < 0x1p440)) return 0;
  return std::ilogb(largest);
}

// x / 2^exponent; in two halves, as 2^1074 itself is no double.
inline Doubles scaled_down(Doubles x, int64_t exponent) {
  const int half = static_cast<int>(exponent / 2);
  const int rest = static_cast<int>(exponent) - half;
  return x * std::ldexp(1.0, -half) * std::ldexp(1.0, -rest);
}

}  // namespace ferry

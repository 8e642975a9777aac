// Differences in units of the last place.
#pragma once

#include "elements.h"

namespace ferry {

struct Distances {
  double largest = 0, sum = 0;
};

// How many values of a dtype lie between two: sign and magnitude as numbers that grow with the value; -0 is 0.
template <class Raw>
struct Units {
  static constexpr int64_t kSign = -(int64_t{1} << (8 * sizeof(Raw) - 2)) * 2;
  Words largest{}, sum{};
  Doubles long_sum = all(0);  // of elements whose distances a word can't add up

  static Integers in_order(Integers bits) { return bits < 0 ? kSign - bits : bits; }

  void add(Integers m, Integers g) {
    m = in_order(m);
    g = in_order(g);
    const Words distance = m < g ? (Words)g - (Words)m : (Words)m - (Words)g;
    largest = distance > largest ? distance : largest;
    if (sizeof(Raw) == 8)
      long_sum += as_doubles(distance);
    else
      sum += distance;
  }

  void merge(const Units& other) {
    largest = other.largest > largest ? other.largest : largest;
    sum += other.sum;
    long_sum += other.long_sum;
  }
};

template <class Raw>
void add_units(Distances& total, const Raw* mine, const Raw* golden, size_t count) {
  const size_t whole = count / kColumn * kColumn;
  Raw last_mine[kColumn] = {}, last_golden[kColumn] = {};  // what is not there is equal
  std::memcpy(last_mine, mine + whole, (count - whole) * sizeof(Raw));
  std::memcpy(last_golden, golden + whole, (count - whole) * sizeof(Raw));
  const Units<Raw> units = over_parts<Units<Raw>>([&](Units<Raw>& part, size_t offset) {
    for (size_t i = offset; i < whole; i += kColumn)
      part.add(load_as<Integers>(mine + i), load_as<Integers>(golden + i));
    part.add(load_as<Integers>(last_mine + offset), load_as<Integers>(last_golden + offset));
  });
  for (size_t lane = 0; lane < kLanes; ++lane)
    total.largest = std::fmax(total.largest, static_cast<double>(units.largest[lane]));
  total.sum += static_cast<double>(sum_of((Integers)units.sum)) + sum_of(units.long_sum);
}

inline void add_units(Distances& total, const void* mine, const void* golden, int32_t dtype, size_t count) {
  switch (size_of(dtype)) {
    case 1: return add_units(total, static_cast<const int8_t*>(mine), static_cast<const int8_t*>(golden), count);
    case 2: return add_units(total, static_cast<const int16_t*>(mine), static_cast<const int16_t*>(golden), count);
    case 4: return add_units(total, static_cast<const int32_t*>(mine), static_cast<const int32_t*>(golden), count);
    default: return add_units(total, static_cast<const int64_t*>(mine), static_cast<const int64_t*>(golden), count);
  }
}

}  // namespace ferry

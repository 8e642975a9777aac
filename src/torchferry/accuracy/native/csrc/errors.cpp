// How far results are from the right ones, element by element against a limit: sums for judge/margins.py, in one pass.
#include "elements.h"

namespace ferry {
namespace {

// In the order of CLimits in errors.py.
struct Limits {
  double digits;           // half a unit in the last place of 1 is 2^-digits
  double least_half;       // smaller halves of units do not count: devices may take such numbers for zero
  double half_of_zero;     // what counts as half a unit where the right result is 0
  double rounding;         // how many such halves a correct result may be off
  double share, tiny;      // of what moved inputs do, and beside that
  double unit, floor;      // the least that moved inputs do: of the result itself, and of any element
  double exactly;          // half a unit is a bound that is reached
  double smallest_normal, largest_finite;
  double rms_compute, rms_rounding, bias_rounding, bias_compute;
};

// In the order of CErrorSums in errors.py.
struct ErrorSums {
  double nonfinite = 0, counted = 0, largest = 0, found = 0, expected = 0, away = 0, along = 0, away_squares = 0,
         along_squares = 0, allowed = 0, error_squares = 0, right_squares = 0;
};

struct Totals {
  Doubles largest = all(0), found = all(0), expected = all(0), away = all(0), along = all(0), away_squares = all(0),
          along_squares = all(0), allowed = all(0), error_squares = all(0), right_squares = all(0);
  Integers nonfinite{}, counted{};

  void give_to(ErrorSums& sums) const {
    sums.nonfinite -= static_cast<double>(sum_of(nonfinite));
    sums.counted -= static_cast<double>(sum_of(counted));
    sums.largest = std::fmax(sums.largest, largest_of(largest));
    sums.found += sum_of(found);
    sums.expected += sum_of(expected);
    sums.away += sum_of(away);
    sums.along += sum_of(along);
    sums.away_squares += sum_of(away_squares);
    sums.along_squares += sum_of(along_squares);
    sums.allowed += sum_of(allowed);
    sums.error_squares += sum_of(error_squares);
    sums.right_squares += sum_of(right_squares);
  }
};

// Half a unit in the last place, from the bits of the exponent.
inline Doubles half_unit(Doubles x, const Limits& limits, double scale) {
  const Doubles power = (Doubles)(bits_of(x) & 0x7ff0000000000000);
  return larger(x == 0 ? all(limits.half_of_zero) : power * scale, all(limits.least_half));
}

// Numbers of this size plus the result leave no place for what is less than a unit: the sum is rounded to even.
inline Doubles rounded(Doubles x, Doubles half, const Limits& limits) {
  const Doubles shift = half * 0x1.8p53;
  const Doubles nearest = (x + shift) - shift;
  return magnitude(nearest) <= limits.largest_finite ? nearest : x;
}

struct Block {
  double mine[kBlock], right[kBlock], moved[kBlock], unrounded[kBlock];
};

template <bool kMoved, bool kUnrounded>
void add_column(Totals& totals, const Block& block, size_t i, Integers is_there, const Limits& limits, double scale) {
  const Doubles mine = read<Doubles>(block.mine + i), right = read<Doubles>(block.right + i);
  const Integers finite = is_finite(mine) & is_finite(right);
  totals.nonfinite += ~finite & is_there;
  const Doubles size = magnitude(right);
  const Doubles unit = half_unit(right, limits, scale);
  const Doubles half = unit * limits.rounding;
  const Doubles before = kUnrounded ? half_unit(read<Doubles>(block.unrounded + i), limits, scale) : all(0);
  Doubles moved = larger(size * limits.unit, all(limits.floor));
  if (kMoved) moved = larger(read<Doubles>(block.moved + i), moved);
  const Doubles computed = moved * limits.share + limits.tiny;
  const Doubles inverse = 1.0 / ((half + before) * limits.exactly + computed);
  const Doubles nearest = rounded(right, unit, limits);
  const Doubles error = where(is_there, mine - right), rounding = nearest - right;
  const Doubles ratio = error * inverse;
  totals.largest = larger(magnitude(ratio), totals.largest);
  totals.error_squares += error * error;
  totals.right_squares += where(is_there, right * right);
  const Integers counts = is_there & ((right == 0) | (size >= limits.smallest_normal));
  totals.counted += counts;
  totals.found += where(counts, ratio * ratio);
  const Doubles computing = computed * limits.rms_compute, earlier = before * limits.rms_rounding;
  totals.expected +=
      where(counts, (rounding * rounding + computing * computing + earlier * earlier) * inverse * inverse);
  const Doubles away = where(counts, (mine - nearest) * inverse);
  const Doubles along = right < 0 ? -away : where(right > 0, away);
  totals.away += away;
  totals.along += along;
  totals.away_squares += away * away;
  totals.along_squares += along * along;
  totals.allowed +=
      where(counts, ((half + before) * limits.bias_rounding + computed * limits.bias_compute) * inverse);
}

template <bool kMoved, bool kUnrounded>
void add_block(ErrorSums& sums, const Block& block, size_t count, const Limits& limits) {
  const double scale = std::ldexp(1.0, -static_cast<int>(limits.digits));
  const size_t whole = count / kLanes * kLanes;
  Totals totals;
  for (size_t i = 0; i < whole; i += kLanes)
    add_column<kMoved, kUnrounded>(totals, block, i, ~Integers{}, limits, scale);
  if (whole < count) {
    Integers is_there{};
    for (size_t lane = 0; lane < count - whole; ++lane) is_there[lane] = -1;
    add_column<kMoved, kUnrounded>(totals, block, whole, is_there, limits, scale);
  }
  totals.give_to(sums);
}

struct Reals {
  const char* start;
  int32_t dtype;

  void load(double* values, size_t place, size_t count) const {
    if (start == nullptr) return;
    decode(start + place * size_of(dtype), dtype, count, values);
    for (size_t i = count; i % kLanes; ++i) values[i] = 0;
  }
};

// Numbers of 64 bits as places in a table.
inline uint32_t place_of(uint64_t bits, int shift) { return static_cast<uint32_t>(bits * 0x9E3779B97F4A7C15u >> shift); }

}  // namespace
}  // namespace ferry

extern "C" __attribute__((visibility("default"))) void torchferry_errors(
    const void* mine, int32_t mine_dtype, const void* right, int32_t right_dtype, const double* moved,
    const void* unrounded, uint64_t count, const void* given, void* found) {
  using namespace ferry;
  ExactArithmetic exact;
  const Limits& limits = *static_cast<const Limits*>(given);
  const Reals of_mine{static_cast<const char*>(mine), mine_dtype}, of_right{static_cast<const char*>(right), right_dtype},
      of_moved{reinterpret_cast<const char*>(moved), kFloat64}, of_unrounded{static_cast<const char*>(unrounded), right_dtype};
  ErrorSums sums;
  Block block;
  for (uint64_t start = 0; start < count; start += kBlock) {
    const size_t length = count - start < kBlock ? count - start : kBlock;
    of_mine.load(block.mine, start, length);
    of_right.load(block.right, start, length);
    of_moved.load(block.moved, start, length);
    of_unrounded.load(block.unrounded, start, length);
    if (moved != nullptr)
      unrounded != nullptr ? add_block<true, true>(sums, block, length, limits)
                           : add_block<true, false>(sums, block, length, limits);
    else
      unrounded != nullptr ? add_block<false, true>(sums, block, length, limits)
                           : add_block<false, false>(sums, block, length, limits);
  }
  std::memcpy(found, &sums, sizeof(sums));
}

// About how many different values every `step`-th of these has: exact where there are few. `table` has 2^16 bytes.
extern "C" __attribute__((visibility("default"))) double torchferry_different(
    const void* values, int32_t dtype, uint64_t count, uint64_t step, uint64_t* table) {
  using namespace ferry;
  constexpr int kBits = 19;
  std::memset(table, 0, size_t{1} << (kBits - 3));
  const char* bytes = static_cast<const char*>(values);
  uint64_t taken = 0;
  for (uint64_t i = 0; i < count; i += step) {
    const uint64_t bits = dtype == kFloat64 ? read<uint64_t>(bytes + 8 * i) : read<uint32_t>(bytes + 4 * i);
    const uint32_t place = place_of(bits, 64 - kBits);
    uint64_t& word = table[place / 64];
    const uint64_t mask = uint64_t{1} << (place % 64);
    taken += !(word & mask);
    word |= mask;
  }
  const double places = std::ldexp(1.0, kBits);
  return -places * std::log1p(-static_cast<double>(taken) / places);
}

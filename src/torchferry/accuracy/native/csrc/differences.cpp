// How far one tensor is from another: sums over pairs of elements, in one pass.
#include <initializer_list>

#include "statistics.h"
#include "units.h"

namespace ferry {
namespace {

// In the order of CSums in sums.py.
struct Differences {
  uint64_t count = 0, equal = 0, finite = 0, relative = 0, wrong_zeros = 0, wrong_nonfinite = 0;
  uint64_t nans = 0, infinities = 0, zeros = 0, golden_zeros = 0, within_thousandth = 0, within_five = 0;
  int64_t worst = -1, first_nonfinite = -1;
  double max_abs = 0, max_rel = 0, sum_rel = 0, squares_rel = 0;
  Distances units;
  Scaled bias, sum_abs, errors, mine, golden, product;
};

inline uint64_t number_of(Integers masks) { return static_cast<uint64_t>(-sum_of(masks)); }

struct Sums {
  Doubles max_abs = all(0), max_rel = all(0), sum_rel = all(0), squares_rel = all(0), bias = all(0),
          sum_abs = all(0), errors = all(0), mine = all(0), golden = all(0), product = all(0);
  // counted downwards: a mask is -1
  Integers equal{}, finite{}, relative{}, wrong_zeros{}, wrong_nonfinite{}, nans{}, infinities{}, zeros{}, golden_zeros{},
      within_thousandth{}, within_five{};

  // A difference is `times` its size.
  void add_relative(Doubles size, double times, Doubles g, Integers wrong_zero, Integers in_figures, Integers same) {
    const Integers zero = g == 0;
    relative += ~zero & in_figures;
    const Doubles error = where(~zero & in_figures, size / (zero ? all(1) : magnitude(g)) * times);
    max_rel = larger(error, max_rel);
    sum_rel += error;
    squares_rel += error * error;
    within_thousandth += (in_figures & (error < 1e-3) & ~wrong_zero) | same;
    within_five += (in_figures & (error < 5e-3) & ~wrong_zero) | same;
  }

  void merge(const Sums& other) {
    max_abs = larger(other.max_abs, max_abs);
    max_rel = larger(other.max_rel, max_rel);
    for (Doubles Sums::*sum : {&Sums::sum_rel, &Sums::squares_rel, &Sums::bias, &Sums::sum_abs, &Sums::errors,
                               &Sums::mine, &Sums::golden, &Sums::product})
      this->*sum += other.*sum;
    for (Integers Sums::*number :
         {&Sums::equal, &Sums::finite, &Sums::relative, &Sums::wrong_zeros, &Sums::wrong_nonfinite, &Sums::nans,
          &Sums::infinities, &Sums::zeros, &Sums::golden_zeros, &Sums::within_thousandth, &Sums::within_five})
      this->*number += other.*number;
  }

  // All are finite, and their squares sound.
  void add(Doubles m, Doubles g, Doubles d) {
    const Doubles size = magnitude(d);
    const Integers wrong_zero = (g == 0) & (d != 0);
    equal += d == 0;
    zeros += m == 0;
    golden_zeros += g == 0;
    wrong_zeros += wrong_zero;
    add_relative(size, 1, g, wrong_zero, ~Integers{}, Integers{});
    max_abs = larger(size, max_abs);
    bias += d;
    sum_abs += size;
    errors += d * d;
    mine += m * m;
    golden += g * g;
    product += m * g;
  }
};

// The powers of two by which mine, golden and their differences are divided before they are squared.
struct Exponents {
  int64_t mine = 0, golden = 0, difference = 0;
  bool halve = false;  // a difference is too large for a double
};

inline Doubles difference_of(Doubles m, Doubles g, Doubles d, bool halve) { return halve ? m * 0.5 - g * 0.5 : d; }

// Anything may be in it.
void add_carefully(Sums& sums, Doubles m, Doubles g, Doubles d, const Exponents& by) {
  const Integers finite = is_finite(m) & is_finite(g);
  const Integers same = ~finite & ((m == g) | ((m != m) & (g != g)));
  d = where(finite, difference_of(m, g, d, by.halve));
  const Integers wrong_zero = finite & (g == 0) & (d != 0);
  sums.finite += finite;
  sums.equal += (finite & (d == 0)) | same;
  sums.wrong_nonfinite += ~finite & ~same;
  sums.wrong_zeros += wrong_zero;
  sums.nans += m != m;
  sums.infinities += ~is_finite(m) & (m == m);
  sums.zeros += m == 0;
  sums.golden_zeros += g == 0;
  const double times = by.halve ? 2 : 1;
  sums.add_relative(magnitude(d), times, where(finite, g), wrong_zero, finite, same);
  sums.max_abs = larger(magnitude(d) * times, sums.max_abs);
  const Doubles dd = scaled_down(d, by.difference), mm = scaled_down(where(finite, m), by.mine),
                gg = scaled_down(where(finite, g), by.golden);
  sums.bias += dd;
  sums.sum_abs += magnitude(dd);
  sums.errors += dd * dd;
  sums.mine += mm * mm;
  sums.golden += gg * gg;
  sums.product += mm * gg;
}

void take_over(Differences& total, const Sums& sums, size_t count, const Exponents& by) {
  total.count += count;
  total.equal += number_of(sums.equal);
  total.relative += number_of(sums.relative);
  total.wrong_zeros += number_of(sums.wrong_zeros);
  total.wrong_nonfinite += number_of(sums.wrong_nonfinite);
  total.nans += number_of(sums.nans);
  total.infinities += number_of(sums.infinities);
  total.zeros += number_of(sums.zeros);
  total.golden_zeros += number_of(sums.golden_zeros);
  total.within_thousandth += number_of(sums.within_thousandth);
  total.within_five += number_of(sums.within_five);
  total.max_rel = std::fmax(total.max_rel, largest_of(sums.max_rel));
  total.sum_rel += sum_of(sums.sum_rel);
  total.squares_rel += sum_of(sums.squares_rel);
  const int64_t difference = by.difference + by.halve;
  total.bias.add(sum_of(sums.bias), difference);
  total.sum_abs.add(sum_of(sums.sum_abs), difference);
  total.errors.add(sum_of(sums.errors), 2 * difference);
  total.mine.add(sum_of(sums.mine), 2 * by.mine);
  total.golden.add(sum_of(sums.golden), 2 * by.golden);
  total.product.add(sum_of(sums.product), by.mine + by.golden);
}

// Pairs of values. Elements that a double holds: their difference is that of the doubles.
template <class Real>
struct Values {
  const Real* mine;
  const Real* golden;

  void load(size_t i, Doubles& m, Doubles& g, Doubles& d) const {
    m = load_as<Doubles>(mine + i);
    g = load_as<Doubles>(golden + i);
    d = m - g;
  }
  Values from(size_t i) const { return {mine + i, golden + i}; }
  double mine_at(size_t i) const { return static_cast<double>(read<Real>(mine + i)); }
  double golden_at(size_t i) const { return static_cast<double>(read<Real>(golden + i)); }
  double difference_at(size_t i) const { return mine_at(i) - golden_at(i); }
};

// Integers of 64 bits: neighbours may be one double, so they are subtracted before they are rounded.
template <class Int>
struct Longs {
  const Int* mine;
  const Int* golden;

  void load(size_t i, Doubles& m, Doubles& g, Doubles& d) const {
    typedef Int Lanes __attribute__((vector_size(sizeof(Int) * kLanes)));
    const Lanes x = read<Lanes>(mine + i), y = read<Lanes>(golden + i);
    m = with_sign((Words)x, (Integers)(x < 0));
    g = with_sign((Words)y, (Integers)(y < 0));
    d = with_sign((Words)x - (Words)y, (Integers)(x < y));
  }
  static Doubles with_sign(Words x, Integers negative) {
    const Doubles size = as_doubles(negative ? -x : x);
    return negative ? -size : size;
  }
  Longs from(size_t i) const { return {mine + i, golden + i}; }
  double mine_at(size_t i) const { return static_cast<double>(read<Int>(mine + i)); }
  double golden_at(size_t i) const { return static_cast<double>(read<Int>(golden + i)); }
  double difference_at(size_t i) const {
    const Int x = read<Int>(mine + i), y = read<Int>(golden + i);
    const uint64_t a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
    return x < y ? -static_cast<double>(b - a) : static_cast<double>(a - b);
  }
};

template <class Source>
Exponents exponents_of(const Source& source, size_t count) {
  double mine = 0, golden = 0, difference = 0;
  for (size_t i = 0; i < count; ++i) {
    const double m = std::fabs(source.mine_at(i)), g = std::fabs(source.golden_at(i));
    if (!(m <= DBL_MAX && g <= DBL_MAX)) continue;
    mine = std::fmax(mine, m);
    golden = std::fmax(golden, g);
    difference = std::fmax(difference, std::fabs(source.difference_at(i)));
  }
  Exponents found;
  found.mine = exponent_for(mine);
  found.golden = exponent_for(golden);
  found.halve = difference > DBL_MAX;
  found.difference = exponent_for(found.halve ? DBL_MAX : difference);
  return found;
}

// The last elements, filled up with nan.
struct Last {
  double mine[kColumn], golden[kColumn], difference[kColumn];

  template <class Source>
  Last(const Source& source, size_t start, size_t count) {
    for (size_t i = 0; i < kColumn; ++i) {
      const bool is_there = start + i < count;
      mine[i] = is_there ? source.mine_at(start + i) : NAN;
      golden[i] = is_there ? source.golden_at(start + i) : NAN;
      difference[i] = is_there ? source.difference_at(start + i) : NAN;
    }
  }
};

template <class Source>
double add_carefully(Differences& total, const Source& source, size_t count) {
  const Exponents by = exponents_of(source, count);
  const size_t whole = count / kColumn * kColumn;
  const Last last(source, whole, count);
  const Sums sums = over_parts<Sums>([&](Sums& part, size_t offset) {
    Doubles m, g, d;
    for (size_t i = offset; i < whole; i += kColumn) {
      source.load(i, m, g, d);
      add_carefully(part, m, g, d, by);
    }
    if (whole < count)
      add_carefully(part, read<Doubles>(last.mine + offset), read<Doubles>(last.golden + offset),
                    read<Doubles>(last.difference + offset), by);
  });
  if (whole < count) {
    const uint64_t filled = kColumn - (count - whole);
    total.equal -= filled;
    total.nans -= filled;
    total.within_thousandth -= filled;
    total.within_five -= filled;
  }
  take_over(total, sums, count, by);
  total.finite += number_of(sums.finite);
  return largest_of(sums.max_abs);
}

inline bool is_sound_or(double squares, bool none) { return none ? squares == 0 : is_sound(squares); }

// Up to kBlock pairs: the largest difference. Hopes that all are finite and their squares sound.
template <class Source>
double add_quickly(Differences& total, const Source& source, size_t count) {
  const size_t whole = count / kColumn * kColumn;
  const Sums sums = over_parts<Sums>([&](Sums& part, size_t offset) {
    Doubles m, g, d;
    for (size_t i = offset; i < whole; i += kColumn) {
      source.load(i, m, g, d);
      part.add(m, g, d);
    }
  });
  if (!is_sound_or(sum_of(sums.mine), number_of(sums.zeros) == whole) ||
      !is_sound_or(sum_of(sums.golden), number_of(sums.golden_zeros) == whole) ||
      !is_sound_or(sum_of(sums.errors), number_of(sums.equal) == whole))
    return add_carefully(total, source, count);
  take_over(total, sums, whole, Exponents{});
  total.finite += whole;
  const double largest = largest_of(sums.max_abs);
  return whole == count ? largest : std::fmax(largest, add_carefully(total, source.from(whole), count - whole));
}

template <class Source>
void find_worst(Differences& total, const Source& source, size_t count, int64_t position, double largest) {
  const bool seek_nonfinite = total.wrong_nonfinite > 0 && total.first_nonfinite < 0;
  if (largest > total.max_abs || seek_nonfinite) {
    for (size_t i = 0; i < count; ++i) {
      const double m = source.mine_at(i), g = source.golden_at(i), size = std::fabs(source.difference_at(i));
      const bool finite = std::fabs(m) <= DBL_MAX && std::fabs(g) <= DBL_MAX;
      if (finite && size > total.max_abs) {
        total.max_abs = size;
        total.worst = position + static_cast<int64_t>(i);
      } else if (!finite && total.first_nonfinite < 0 && !(m == g || (m != m && g != g))) {
        total.first_nonfinite = position + static_cast<int64_t>(i);
      }
    }
  }
}

template <class Source>
bool add_pairs(Differences& total, const Source& source, size_t count, int64_t position) {
  const uint64_t finite_before = total.finite;
  const double largest = add_quickly(total, source, count);
  find_worst(total, source, count, position, largest);
  return total.finite - finite_before == count;
}

// Blocks with equal bits: only the sizes and the special values remain to be known.
void add_equal(Differences& total, const void* raw, int32_t dtype, size_t count) {
  const Summary summary = summary_of(raw, dtype, count);
  total.count += count;
  total.equal += count;
  total.finite += count - summary.nans - summary.infinities;
  total.relative += count - summary.nans - summary.infinities - summary.zeros;
  total.nans += summary.nans;
  total.infinities += summary.infinities;
  total.zeros += summary.zeros;
  total.golden_zeros += summary.zeros;
  total.within_thousandth += count;
  total.within_five += count;
  total.mine.add(summary.squares.value, summary.squares.exponent);
  total.golden.add(summary.squares.value, summary.squares.exponent);
  total.product.add(summary.squares.value, summary.squares.exponent);
}

struct Tensors {
  const char* mine;
  const char* golden;
  int32_t mine_dtype, golden_dtype;
};

// The same for pairs that are not all finite, or not of one dtype: in golden's dtype, without those that are not.
void add_units_of_values(Differences& total, const Tensors& block, size_t count) {
  double mine[kBlock], golden[kBlock];
  decode(block.mine, block.mine_dtype, count, mine);
  decode(block.golden, block.golden_dtype, count, golden);
  const size_t size = size_of(block.golden_dtype);
  char mine_raw[kBlock * 8], golden_raw[kBlock * 8];
  std::memcpy(golden_raw, block.golden, count * size);
  if (block.mine_dtype == block.golden_dtype)
    std::memcpy(mine_raw, block.mine, count * size);
  else
    encode(mine, count, block.golden_dtype, mine_raw);
  for (size_t i = 0; i < count; ++i)
    if (!(std::fabs(mine[i]) <= DBL_MAX && std::fabs(golden[i]) <= DBL_MAX)) {
      std::memset(mine_raw + i * size, 0, size);
      std::memset(golden_raw + i * size, 0, size);
    }
  add_units(total.units, mine_raw, golden_raw, block.golden_dtype, count);
}

template <class Real>
bool add_decoded(Differences& total, const Tensors& block, size_t count, int64_t position) {
  Real mine[kBlock], golden[kBlock];
  decode(block.mine, block.mine_dtype, count, mine);
  decode(block.golden, block.golden_dtype, count, golden);
  return add_pairs(total, Values<Real>{mine, golden}, count, position);
}

template <class Source, class T>
bool add_plain(Differences& total, const Tensors& block, size_t count, int64_t position) {
  const Source source{reinterpret_cast<const T*>(block.mine), reinterpret_cast<const T*>(block.golden)};
  return add_pairs(total, source, count, position);
}

// Whether all pairs were finite.
bool add_values(Differences& total, const Tensors& block, size_t count, int64_t position) {
  if (block.mine_dtype == block.golden_dtype) switch (block.mine_dtype) {
      case kFloat32: return add_plain<Values<float>, float>(total, block, count, position);
      case kFloat64: return add_plain<Values<double>, double>(total, block, count, position);
      case kInt64: return add_plain<Longs<int64_t>, int64_t>(total, block, count, position);
      case kUInt64: return add_plain<Longs<uint64_t>, uint64_t>(total, block, count, position);
      default: break;
    }
  if (needs_double(block.mine_dtype) || needs_double(block.golden_dtype))
    return add_decoded<double>(total, block, count, position);
  return add_decoded<float>(total, block, count, position);
}

void add_block(Differences& total, const Tensors& block, size_t count, int64_t position) {
  const bool one_dtype = block.mine_dtype == block.golden_dtype;
  if (one_dtype && std::memcmp(block.mine, block.golden, count * size_of(block.mine_dtype)) == 0)
    return add_equal(total, block.golden, block.golden_dtype, count);
  const bool finite = add_values(total, block, count, position);
  if (!is_float(block.golden_dtype)) return;
  if (one_dtype && finite)
    add_units(total.units, block.mine, block.golden, block.golden_dtype, count);
  else
    add_units_of_values(total, block, count);
}

}  // namespace
}  // namespace ferry

extern "C" __attribute__((visibility("default"))) void torchferry_differences(
    const void* mine, int32_t mine_dtype, const void* golden, int32_t golden_dtype, uint64_t count, void* found) {
  using namespace ferry;
  ExactArithmetic exact;
  const size_t mine_size = size_of(mine_dtype), golden_size = size_of(golden_dtype);
  Differences total;
  for (uint64_t start = 0; start < count; start += kBlock) {
    const size_t length = count - start < kBlock ? count - start : kBlock;
    const Tensors block{static_cast<const char*>(mine) + start * mine_size,
                        static_cast<const char*>(golden) + start * golden_size, mine_dtype, golden_dtype};
    add_block(total, block, length, static_cast<int64_t>(start));
  }
  std::memcpy(found, &total, sizeof(total));
}

// Counts, extremes, mean, root mean square and checksum of a tensor's elements.
#include "statistics.h"

namespace ferry {

void Summary::add(const Summary& other) {
  count += other.count;
  nans += other.nans;
  infinities += other.infinities;
  zeros += other.zeros;
  minimum = other.minimum < minimum ? other.minimum : minimum;
  maximum = other.maximum > maximum ? other.maximum : maximum;
  sum.add(other.sum.value, other.sum.exponent);
  squares.add(other.squares.value, other.squares.exponent);
}

namespace {

struct Sums {
  Doubles minimum = all(INFINITY), maximum = all(-INFINITY), sum = all(0), squares = all(0);
  Integers zeros{}, nans{}, infinities{};  // counted downwards: a mask is -1

  void add(Doubles x) {
    minimum = smaller(x, minimum);
    maximum = larger(x, maximum);
    sum += x;
    squares += x * x;
    zeros += x == 0;
  }

  // x may hold what is not finite.
  void add_finite(Doubles x, int64_t exponent) {
    const Integers finite = is_finite(x);
    nans += x != x;
    infinities += ~finite & (x == x);
    zeros += x == 0;
    minimum = smaller(finite ? x : all(INFINITY), minimum);
    maximum = larger(finite ? x : all(-INFINITY), maximum);
    const Doubles y = scaled_down(where(finite, x), exponent);
    sum += y;
    squares += y * y;
  }

  void merge(const Sums& other) {
    minimum = smaller(other.minimum, minimum);
    maximum = larger(other.maximum, maximum);
    sum += other.sum;
    squares += other.squares;
    zeros += other.zeros;
    nans += other.nans;
    infinities += other.infinities;
  }

  Summary summary(size_t count, int64_t exponent) const {
    Summary found;
    found.count = count;
    found.nans = static_cast<uint64_t>(-sum_of(nans));
    found.infinities = static_cast<uint64_t>(-sum_of(infinities));
    found.zeros = static_cast<uint64_t>(-sum_of(zeros));
    found.minimum = smallest_of(minimum);
    found.maximum = largest_of(maximum);
    found.sum.add(sum_of(sum), exponent);
    found.squares.add(sum_of(squares), 2 * exponent);
    return found;
  }
};

template <class Real>
double largest_finite(const Real* values, size_t count) {
  double found = 0;
  for (size_t i = 0; i < count; ++i) {
    const double size = std::fabs(static_cast<double>(read<Real>(values + i)));
    if (size <= DBL_MAX && size > found) found = size;
  }
  return found;
}

template <class Real>
Summary careful_summary(const Real* values, size_t count) {
  const int64_t exponent = sizeof(Real) == 8 ? exponent_for(largest_finite(values, count)) : 0;
  const size_t whole = count / kColumn * kColumn;
  // The last ones, filled up with nan: what is not finite takes part in no sum.
  Real last[kColumn];
  for (size_t i = 0; i < kColumn; ++i) last[i] = whole + i < count ? read<Real>(values + whole + i) : Real(NAN);
  const Sums sums = over_parts<Sums>([&](Sums& part, size_t offset) {
    for (size_t i = offset; i < whole; i += kColumn) part.add_finite(load_as<Doubles>(values + i), exponent);
    if (whole < count) part.add_finite(load_as<Doubles>(last + offset), exponent);
  });
  Summary found = sums.summary(count, exponent);
  if (whole < count) found.nans -= kColumn - (count - whole);
  return found;
}

// Hopes for the best: that all are finite, and their squares sound.
template <class Real>
Summary quick_summary(const Real* values, size_t count) {
  const size_t whole = count / kColumn * kColumn;
  const Sums sums = over_parts<Sums>([&](Sums& part, size_t offset) {
    for (size_t i = offset; i < whole; i += kColumn) part.add(load_as<Doubles>(values + i));
  });
  const double squares = sum_of(sums.squares);
  const bool all_zero = static_cast<size_t>(-sum_of(sums.zeros)) == whole;
  if (!all_zero && !is_sound(squares)) return careful_summary(values, count);
  Summary found = sums.summary(whole, 0);
  if (whole < count) found.add(careful_summary(values + whole, count - whole));
  return found;
}

constexpr uint64_t kStep = 0x9e3779b97f4a7c15, kFirst = 0xbf58476d1ce4e5b9, kSecond = 0x94d049bb133111eb;

// Of bytes, in words of eight. `products` feels the place of each word, `words` any change of a single one.
class Checksum {
 public:
  Checksum() {
    for (size_t lane = 0; lane < kLanes; ++lane) keys_[lane] = (lane + 1) * kStep;
  }

  // Only the last piece may have a length that is no multiple of 64.
  void add(const char* bytes, size_t length) {
    const size_t whole = length / sizeof(Words) * sizeof(Words);
    for (size_t i = 0; i < whole; i += sizeof(Words)) add(read<Words>(bytes + i));
    if (whole < length) {
      char last[sizeof(Words)] = {};
      std::memcpy(last, bytes + whole, length - whole);
      add_last(read<Words>(last), length - whole);
    }
  }

  uint64_t value(uint64_t length) const {
    uint64_t products = 0, words = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      products += products_[lane];
      words += words_[lane];
    }
    uint64_t mixed = (products ^ products >> 29) * kFirst + words * kSecond + length * kStep;
    mixed = (mixed ^ mixed >> 30) * kFirst;
    return mixed ^ mixed >> 31;
  }

 private:
  void add(Words words) {
    products_ += product_of_halves(words ^ keys_);
    words_ += words;
    keys_ += kLanes * kStep;
  }

  // Words beyond the end are none.
  void add_last(Words words, size_t length) {
    const Words products = product_of_halves(words ^ keys_);
    for (size_t lane = 0; 8 * lane < length; ++lane) products_[lane] += products[lane];
    words_ += words;
  }

  Words keys_{}, products_{}, words_{};
};

struct Row {
  uint64_t count, nans, infinities, zeros;
  double minimum, maximum, mean, rms;
  uint64_t checksum;
};
static_assert(sizeof(Row) == 72, "as the files have it");

void finish(const Summary& summary, Row& row) {
  row.count = summary.count;
  row.nans = summary.nans;
  row.infinities = summary.infinities;
  row.zeros = summary.zeros;
  const uint64_t finite = summary.count - summary.nans - summary.infinities;
  if (finite == 0) {
    row.minimum = row.maximum = row.mean = row.rms = 0;
    return;
  }
  row.minimum = summary.minimum;
  row.maximum = summary.maximum;
  const double number = static_cast<double>(finite);
  row.mean = std::ldexp(summary.sum.value / number, static_cast<int>(summary.sum.exponent));
  row.rms = std::ldexp(std::sqrt(summary.squares.value / number), static_cast<int>(summary.squares.exponent / 2));
}

}  // namespace

Summary summary_of(const float* values, size_t count) { return quick_summary(values, count); }
Summary summary_of(const double* values, size_t count) { return quick_summary(values, count); }

Summary summary_of(const void* raw, int32_t dtype, size_t count) {
  if (dtype == kFloat32) return quick_summary(static_cast<const float*>(raw), count);
  if (dtype == kFloat64) return quick_summary(static_cast<const double*>(raw), count);
  if (needs_double(dtype)) {
    double values[kBlock];
    decode(raw, dtype, count, values);
    return quick_summary(values, count);
  }
  float values[kBlock];
  decode(raw, dtype, count, values);
  return quick_summary(values, count);
}

}  // namespace ferry

extern "C" __attribute__((visibility("default"))) void torchferry_statistics(const void* data, int32_t dtype,
                                                                            uint64_t count, void* row) {
  using namespace ferry;
  ExactArithmetic exact;
  const char* bytes = static_cast<const char*>(data);
  const size_t size = size_of(dtype);
  Summary summary;
  Checksum checksum;
  for (uint64_t start = 0; start < count; start += kBlock) {
    const size_t length = count - start < kBlock ? count - start : kBlock;
    checksum.add(bytes + start * size, length * size);
    summary.add(summary_of(bytes + start * size, dtype, length));
  }
  Row found;
  finish(summary, found);
  found.checksum = checksum.value(count * size);
  std::memcpy(row, &found, sizeof(found));
}

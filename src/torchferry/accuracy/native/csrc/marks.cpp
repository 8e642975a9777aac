// Which elements are wrong.
#include "elements.h"

namespace ferry {
namespace {

// In the order of the names in differences.py.
enum Mark : uint8_t { kRight, kWrong, kNonfinite };

void mark_block(const double* mine, const double* golden, size_t count, double relative, double floor,
                uint8_t* marks) {
  bool finite = true;
  for (size_t i = 0; i < count; ++i) {
    const double size = std::fabs(mine[i] - golden[i]);
    const double limit = std::fmax(relative * std::fabs(golden[i]), floor);
    marks[i] = size > limit ? kWrong : kRight;
    finite &= std::fabs(mine[i]) <= DBL_MAX;
    finite &= std::fabs(golden[i]) <= DBL_MAX;
  }
  if (finite) return;
  for (size_t i = 0; i < count; ++i) {
    const double m = mine[i], g = golden[i];
    if (std::fabs(m) <= DBL_MAX && std::fabs(g) <= DBL_MAX) continue;
    marks[i] = m == g || (m != m && g != g) ? kRight : kNonfinite;
  }
}

template <class Int>
void mark_unequal(const char* mine, const char* golden, size_t count, uint8_t* marks) {
  for (size_t i = 0; i < count; ++i)
    marks[i] = read<Int>(mine + i * sizeof(Int)) != read<Int>(golden + i * sizeof(Int)) ? kWrong : kRight;
}

}  // namespace
}  // namespace ferry

// A finite element is wrong if it is off by more than the larger of `relative` * golden and `floor`.
extern "C" __attribute__((visibility("default"))) void torchferry_marks(
    const void* mine, int32_t mine_dtype, const void* golden, int32_t golden_dtype, uint64_t count,
    double relative, double floor, uint8_t* marks) {
  using namespace ferry;
  ExactArithmetic exact;
  const char* m = static_cast<const char*>(mine);
  const char* g = static_cast<const char*>(golden);
  // Neighbours among these integers may be one double.
  if (mine_dtype == golden_dtype && (mine_dtype == kInt64 || mine_dtype == kUInt64) && relative == 0 && floor == 0)
    return mark_unequal<int64_t>(m, g, count, marks);
  const size_t mine_size = size_of(mine_dtype), golden_size = size_of(golden_dtype);
  double mine_values[kBlock], golden_values[kBlock];
  for (uint64_t start = 0; start < count; start += kBlock) {
    const size_t length = count - start < kBlock ? count - start : kBlock;
    decode(m + start * mine_size, mine_dtype, length, mine_values);
    decode(g + start * golden_size, golden_dtype, length, golden_values);
    mark_block(mine_values, golden_values, length, relative, floor, marks + start);
  }
}

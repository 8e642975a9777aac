// Products and convolutions in half precision: the CPU's kernels for them are many times slower than those for single
// precision, and other ones where the CPU has other instructions. Here they are computed in single precision and
// rounded, as devices do.
#pragma once

#include "conversion.h"

namespace ferry {

// Whether an operator is one of these, by its name without overload.
bool computes_half_in_single(const std::string& name);

// The conversion for a call of such an operator on host tensors; none if its tensors are not all in one half precision,
// or if it would write to memory that it also reads: the CPU's kernel then says what is wrong.
std::optional<Conversion> to_single(const Operator& op, const torch::jit::Stack& stack, size_t begin);

// While this lives, such operators inside of host kernels are computed so, too.
class HalfInSingle {
 public:
  HalfInSingle();
  ~HalfInSingle();
  HalfInSingle(const HalfInSingle&) = delete;
  HalfInSingle& operator=(const HalfInSingle&) = delete;
};

// To be called before half precision is computed: lets HalfInSingle take effect.
void prepare_half_in_single();

// For a process in which the CPU stands for a device: all such operators on the CPU are computed so from here on.
void compute_half_in_single();

} // namespace ferry

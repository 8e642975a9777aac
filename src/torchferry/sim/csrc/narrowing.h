// What the vendor does with dtypes that it has no full support for.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <tuple>
#include <vector>

namespace ferry {

// The numbers are shared with Narrowing in native.py.
enum class Narrowing : int { native = 0, cast_as = 1, computed_as = 2, refused = 3 };

void set_narrowing(at::ScalarType dtype, at::ScalarType becomes, Narrowing narrowing);
void set_dtype_messages(std::string cast, std::string refused);

// Raise if tensors of this dtype can't be on the device.
void check_dtype(at::ScalarType dtype);

// What a cast to `asked` on the device really gives; another dtype comes with one warning.
at::ScalarType cast_dtype(at::ScalarType asked);

// The dtype in which operators on `dtype` compute.
at::ScalarType computed_dtype(at::ScalarType dtype);

// Note that an operator computed narrower than its tensors.
void count_narrowed(at::ScalarType dtype);

std::tuple<std::vector<std::string>, std::vector<int64_t>> narrowed_dtypes();

} // namespace ferry

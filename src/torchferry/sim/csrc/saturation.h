// Cards without infinities: what overflows in half precision becomes the largest number, what is no number becomes 0.
#pragma once

#include <ATen/core/Tensor.h>

namespace ferry {

// From here on results in this dtype saturate.
void set_saturation(at::ScalarType dtype);

// Whether any dtype does.
bool is_saturating();

// Let a host result be what such a card gives, and remember that something overflowed.
void saturate(const at::Tensor& host);

// Whether something overflowed since this was asked last.
bool take_overflow();

} // namespace ferry

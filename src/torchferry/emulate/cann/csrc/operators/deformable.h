// Deformable convolution: the input is sampled at places of their own for each element of the kernel and each output.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace cann::deformable {

using at::Tensor;

// Height and width of the kernel, its steps, the distances of its elements; the padding above, below, left and right.
struct Window {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> dilation;
  std::vector<int64_t> padding;
  int64_t groups = 1; // of channels, each with offsets of its own
};

// Of (batch, channels, height, width) and offsets of (batch, 3 * groups * elements of the kernel, rows, columns), first all across,
// then all down, then the factors: (batch, channels, rows * kernel height, columns * kernel width). Autograd can follow it.
Tensor sampled(const Window& window, const Tensor& input, const Tensor& offsets);

} // namespace cann::deformable

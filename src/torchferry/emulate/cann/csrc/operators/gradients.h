// Gradients by autograd on the CPU: for functions whose backward is no operator of ATen's, equal to those of the same program there.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace cann {

using Tensors = std::vector<at::Tensor>;

// Of what is computed, by each input; where a gradient of a result is undefined, that result does not count. An undefined input
// is handed on as such, and has no gradient.
Tensors gradients(const std::function<Tensors(const Tensors&)>& compute, const Tensors& inputs, const Tensors& of_results);

} // namespace cann

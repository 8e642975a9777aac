// Fourier transforms in half precision. PyTorch refuses them by the device's name before any kernel is asked; here
// they are computed in single precision, as other operators are that the CPU has no half-precision kernel for.
#include "operators.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <optional>

namespace ferry {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

std::optional<at::ScalarType> single_precision(const IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) {
    return std::nullopt;
  }
  switch (value.toTensor().scalar_type()) {
    case at::ScalarType::Half:
      return at::ScalarType::Float;
    case at::ScalarType::ComplexHalf:
      return at::ScalarType::ComplexFloat;
    default:
      return std::nullopt;
  }
}

at::ScalarType half_precision(at::ScalarType dtype) {
  return at::isComplexType(dtype) ? at::ScalarType::ComplexHalf : at::ScalarType::Half;
}

void transform(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
  const Operator& op = operator_of(handle);
  const size_t begin = stack->size() - op.arguments.size();
  std::optional<Tensor> out;
  bool half = false;
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    IValue& value = (*stack)[begin + i];
    const auto single = single_precision(value);
    if (!single.has_value()) {
      continue;
    }
    half = true;
    if (op.arguments[i].written) {
      out = value.toTensor();
    }
    value = value.toTensor().to(*single);
  }
  if (!half) {
    return handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
  }
  handle.callBoxed(stack);
  const Tensor result = stack->back().toTensor();
  stack->back() = out.has_value() ? out->resize_(result.sizes()).copy_(result)
                                  : result.to(half_precision(result.scalar_type()));
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  for (const char* kind : {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft"}) {
    for (const char* dimensions : {"", "2", "n"}) {
      for (const char* overload : {"", ".out"}) {
        const auto name = std::string("fft_") + kind + dimensions + overload;
        m.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&transform>());
      }
    }
  }
}

} // namespace
} // namespace ferry

#include "half_precision.h"

#include "host_call.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <string_view>

namespace ferry {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

constexpr std::array<const char*, 17> kOperators{
    "mm", "mm.out", "addmm", "addmm.out", "addmm_", "bmm", "bmm.out", "baddbmm", "baddbmm.out", "baddbmm_",
    "convolution", "_convolution", "convolution_backward", "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention_for_cpu_backward", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"};

thread_local int inside_of_host_kernels = 0;
std::atomic<bool> everywhere{false};

template <typename Visit>
void each_tensor(const Operator& op, const Stack& stack, size_t begin, const Visit& visit) {
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const IValue& value = stack[begin + i];
    if (op.arguments[i].kind == ArgumentKind::tensor && value.isTensor() && value.toTensor().defined()) {
      visit(op.arguments[i], value.toTensor());
    }
  }
}

bool overlaps(const Operator& op, const Stack& stack, size_t begin, const Tensor& written) {
  int sharing = 0;
  each_tensor(op, stack, begin, [&](const Argument&, const Tensor& tensor) {
    sharing += tensor.has_storage() && tensor.storage().is_alias_of(written.storage());
  });
  return sharing > 1 || !written.is_non_overlapping_and_dense();
}

// Just above the kernels of a device, for any device.
void select(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, Stack* stack) {
  const auto below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::BackendSelect);
  const auto invoke = [&] { handle.redispatchBoxed(below, stack); };
  if (!keys.has(c10::DispatchKey::CPU) || !(everywhere || inside_of_host_kernels > 0)) {
    return invoke();
  }
  const Operator& op = operator_of(handle);
  const size_t begin = stack->size() - op.arguments.size();
  const auto conversion = to_single(op, *stack, begin);
  if (!conversion.has_value()) {
    return invoke();
  }
  HostOnly host_only;
  const Inside inside;
  call_converted(op, *stack, begin, *conversion, invoke);
}

} // namespace

bool computes_half_in_single(const std::string& name) {
  for (const std::string_view known : kOperators) {
    if (name.size() == known.size() + 6 && name.compare(0, 6, "aten::") == 0 && name.compare(6, known.size(), known) == 0) {
      return true;
    }
  }
  return false;
}

std::optional<Conversion> to_single(const Operator& op, const Stack& stack, size_t begin) {
  at::ScalarType half = at::ScalarType::Undefined;
  bool fits = true;
  each_tensor(op, stack, begin, [&](const Argument& argument, const Tensor& tensor) {
    const at::ScalarType dtype = tensor.scalar_type();
    if (argument.always_single || !(at::isFloatingType(dtype) || at::isComplexType(dtype))) {
      return;
    }
    fits &= tensor.layout() == c10::kStrided && tensor.has_storage() &&
        (half == at::ScalarType::Undefined ? single_precision_of(dtype).has_value() : dtype == half) &&
        !(argument.written && overlaps(op, stack, begin, tensor));
    half = dtype;
  });
  if (!fits || half == at::ScalarType::Undefined) {
    return std::nullopt;
  }
  return Conversion{half, *single_precision_of(half)};
}

HalfInSingle::HalfInSingle() {
  ++inside_of_host_kernels;
}

HalfInSingle::~HalfInSingle() {
  --inside_of_host_kernels;
}

// Not before it is needed: a call through it costs other programs some tenths of a microsecond.
void prepare_half_in_single() {
  static const auto* library = [] {
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::BackendSelect, __FILE__, __LINE__);
    for (const char* name : kOperators) {
      if (std::string_view(name) != "_convolution") { // made of others, above this place
        made->impl(name, torch::CppFunction::makeFromBoxedFunction<&select>());
      }
    }
    return made;
  }();
  static_cast<void>(library);
}

void compute_half_in_single() {
  prepare_half_in_single();
  everywhere = true;
}

} // namespace ferry

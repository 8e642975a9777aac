// torch.autocast: PyTorch's own lists of operators, with the CUDA policies, for the device and, on request, the CPU.
#include "reference.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace at::autocast {
namespace {

Tensor binary_cross_entropy_banned(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. "
      "Use torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss.");
}

template <c10::DeviceType device>
void register_policies(torch::Library& m) {
#define FERRY_LOWER_PRECISION(...) KERNEL(device, __VA_ARGS__, lower_precision_fp)
#define FERRY_FP32(...) KERNEL(device, __VA_ARGS__, fp32)
#define FERRY_FP32_SET_OPT_DTYPE(...) KERNEL(device, __VA_ARGS__, fp32_set_opt_dtype)
#define FERRY_PROMOTE(...) KERNEL(device, __VA_ARGS__, promote)
#define FERRY_DIFFERENT_SIGNATURE(...) KERNEL_DIFFERENT_REDISPATCH_SIGNATURE(device, __VA_ARGS__)
  AT_FORALL_LOWER_PRECISION_FP(FERRY_LOWER_PRECISION)
  AT_FORALL_FP32(FERRY_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FERRY_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(FERRY_DIFFERENT_SIGNATURE)
  AT_FORALL_PROMOTE(FERRY_PROMOTE)
  // Recurrent layers: on CUDA the library call inside them is cast, here the layer itself.
  FERRY_LOWER_PRECISION(lstm, input)
  FERRY_LOWER_PRECISION(lstm, data)
  FERRY_LOWER_PRECISION(gru, input)
  FERRY_LOWER_PRECISION(gru, data)
  FERRY_LOWER_PRECISION(rnn_tanh, input)
  FERRY_LOWER_PRECISION(rnn_tanh, data)
  FERRY_LOWER_PRECISION(rnn_relu, input)
  FERRY_LOWER_PRECISION(rnn_relu, data)
  m.impl(TORCH_SELECTIVE_NAME("aten::binary_cross_entropy"), TORCH_FN((&binary_cross_entropy_banned)));
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  register_policies<c10::DeviceType::PrivateUse1>(m);
}

// PyTorch says so when a kernel is replaced; here it is meant.
struct IgnoreWarnings final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

// What the CPU casts and CUDA does not: it has to pass.
void pass_what_cuda_passes(torch::Library& m) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (op.has_value() && name.getNamespace() == "aten" &&
        op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::AutocastPrivateUse1)) {
      m.impl(c10::toString(name).c_str(), torch::CppFunction::makeFallthrough());
    }
  }
}

} // namespace
} // namespace at::autocast

namespace ferry {

void use_cuda_autocast_policies() {
  static const auto* library = [] {
    at::autocast::IgnoreWarnings ignore;
    const c10::WarningUtils::WarningHandlerGuard guard(&ignore);
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::AutocastCPU, __FILE__, __LINE__);
    at::autocast::pass_what_cuda_passes(*made);
    at::autocast::register_policies<c10::DeviceType::CPU>(*made);
    return made;
  }();
  static_cast<void>(library);
}

} // namespace ferry

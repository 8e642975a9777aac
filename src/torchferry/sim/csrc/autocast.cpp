// torch.autocast for the device: PyTorch's own lists of operators, with the CUDA policies.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

#define FERRY_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FERRY_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FERRY_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define FERRY_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

Tensor binary_cross_entropy_banned(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. "
      "Use torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss.");
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(FERRY_LOWER_PRECISION)
  AT_FORALL_FP32(FERRY_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FERRY_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
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

} // namespace
} // namespace at::autocast

// Own kernels: layers that PyTorch computes another way on a device than on the CPU. Here they give the CPU's result.
#include "host_call.h"
#include "host_view.h"
#include "operators.h"

#include <ATen/Functions.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <torch/library.h>

namespace ferry {
namespace {

using at::Tensor;

// The CPU multiplies by noise that is 0 or 1 / (1 - p), rounded to the tensor's dtype.
Tensor dropout_noise(const Tensor& kept, const Tensor& like, double keep_probability) {
  return kept.to(like.scalar_type()).div_(keep_probability);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  pass_gate("aten::native_dropout", "");
  if (!train.value_or(true) || p == 0 || input.numel() == 0) {
    return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
  }
  Tensor noise = at::empty_like(input);
  if (p == 1) {
    noise.zero_();
  } else {
    noise.bernoulli_(1 - p);
  }
  const Tensor kept = noise.to(at::kBool);
  if (p < 1) {
    noise.div_(1 - p);
  }
  return {at::mul(input, noise), kept};
}

Tensor native_dropout_backward(const Tensor& grad, const Tensor& kept, double scale) {
  pass_gate("aten::native_dropout_backward", "");
  return scale == 0 ? at::zeros_like(grad) : at::mul(grad, dropout_noise(kept, grad, 1 / scale));
}

int64_t choose_attention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& mask,
    double dropout_p,
    bool causal,
    std::optional<double> scale,
    bool grouped_queries) {
  const auto on_host = [](const Tensor& tensor) { return is_on_device(tensor) ? host_view(tensor) : tensor; };
  // The choice depends on whether gradients are needed: the host views must say so as well.
  const auto like = [&](const Tensor& tensor) {
    Tensor host = on_host(tensor);
    return tensor.requires_grad() && at::GradMode::is_enabled() ? host.set_requires_grad(true) : host;
  };
  std::optional<Tensor> host_mask;
  if (mask.has_value() && mask->defined()) {
    host_mask = like(*mask);
  }
  return at::_fused_sdp_choice(
      like(query), like(key), like(value), host_mask, dropout_p, causal, scale, grouped_queries);
}

// Whether x.data = y may keep the tensor object when x is on the host and y on the device.
bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  const auto plain = [](const Tensor& tensor) {
    return tensor.layout() == c10::kStrided && (tensor.is_cpu() || is_on_device(tensor));
  };
  return plain(self) && plain(from);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_dropout", &native_dropout);
  m.impl("native_dropout_backward", &native_dropout_backward);
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
}

} // namespace
} // namespace ferry

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &ferry::choose_attention)
} // namespace at::native

// Own kernels: layers that PyTorch computes another way on a device than on the CPU. Here they give the CPU's result.
#include "generator.h"
#include "host_call.h"
#include "host_view.h"
#include "operators.h"

#include <ATen/Functions.h>
#include <ATen/RedispatchFunctions.h>
#include <ATen/native/DispatchStub.h>
#include <ATen/native/transformers/attention.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace ferry {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Whether a tensor stands for another one and has no memory, as while torch.compile captures a graph.
bool is_stand_in(const Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

// Inside of an operator: nothing of it is an operator of the device.
Tensor product(const Tensor& left, const Tensor& right) {
  HostOnly host_only;
  const Inside inside;
  return adopt_host_tensor(host_view(left).mul(host_view(right)), left.device().index());
}

// Dropout with its noise drawn, as devices see it: one operator forward, one backward.
struct Dropout : torch::autograd::Function<Dropout> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const Tensor& noise) {
    context->save_for_backward({noise});
    return product(input, noise);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Passage passage("aten::native_dropout_backward", "");
    const Tensor noise = context->get_saved_variables()[0];
    const bool again = at::GradMode::is_enabled(); // this derivative is to have one itself
    return {again ? gradients[0].mul(noise) : product(gradients[0], noise), Tensor()};
  }
};

// PyTorch's fused dropout for devices rounds otherwise than the CPU's, which multiplies by noise that is 0 or
// 1 / (1 - p). Here it is the CPU's, drawn from the device's generator.
Tensor dropout(const Tensor& input, double p, bool train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (p == 0 || !train || input.numel() == 0) {
    return input;
  }
  if (p == 1) {
    return input.mul(at::zeros({}, input.options()));
  }
  const Passage passage("aten::native_dropout", "");
  const Tensor noise = at::empty_like(input);
  if (is_stand_in(input)) {
    return input.mul(noise.bernoulli_(1 - p).div_(1 - p));
  }
  {
    HostOnly host_only;
    const Inside inside;
    const at::Generator generator = host_generator(default_generator(input.device().index()));
    host_view(noise).bernoulli_(1 - p, generator).div_(1 - p);
  }
  const bool forward_derivative = input._fw_grad(/*level=*/0).defined();
  return forward_derivative ? input.mul(noise) : Dropout::apply(input, noise);
}

// The first releases do not ask whether queries are grouped.
template <typename... Grouped>
int64_t choose_attention(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const std::optional<Tensor>& mask,
    double dropout_p,
    bool causal,
    std::optional<double> scale,
    Grouped... grouped_queries) {
  // The CPU's kernel asks for shapes, dtypes and whether gradients are needed only: it can be asked as it is, about
  // stand-ins as well.
  return at::redispatch::_fused_sdp_choice(
      c10::DispatchKeySet(c10::DispatchKey::CPU), query, key, value, mask, dropout_p, causal, scale, grouped_queries...);
}

// Whether x.data = y may keep the tensor object when x is on the host and y on the device.
bool has_compatible_shallow_copy_type(const Tensor& self, const Tensor& from) {
  const auto plain = [](const Tensor& tensor) {
    return tensor.layout() == c10::kStrided && (tensor.is_cpu() || is_on_device(tensor));
  };
  return plain(self) && plain(from);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("dropout", &dropout);
  m.impl("_has_compatible_shallow_copy_type", &has_compatible_shallow_copy_type);
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("dropout", &dropout);
}

} // namespace
} // namespace ferry

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &ferry::choose_attention)
} // namespace at::native

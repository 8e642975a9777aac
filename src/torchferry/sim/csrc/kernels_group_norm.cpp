// Group normalisation of channels-last images. PyTorch's derivative asks whether the device is the CPU: there it keeps
// the memory format, on devices it makes a plain copy, and the sums then round otherwise. Here it is the CPU's.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

namespace ferry {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<Tensor>;
using Results = std::tuple<Tensor, Tensor, Tensor>;

struct Shape {
  int64_t batch, channels, pixels, groups;
  double epsilon;
};

// PyTorch's own autograd kernel: the one that other devices without a kernel for this key take.
Results with_pytorchs_derivative(
    const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, const Shape& shape) {
  using Signature = Results(
      const Tensor&, const OptionalTensor&, const OptionalTensor&, c10::SymInt, c10::SymInt, c10::SymInt, int64_t, double);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::native_group_norm", "").typed<Signature>();
  c10::DispatchKeySet keys({c10::DispatchKey::AutogradOther, c10::DispatchKey::PrivateUse1});
  if (c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Python)) { // modes see this operator as every other
    keys = keys.add(c10::DispatchKey::Python);
  }
  return op.redispatch(
      keys, input, weight, bias, shape.batch, shape.channels, shape.pixels, shape.groups, shape.epsilon);
}

struct GroupNorm : torch::autograd::Function<GroupNorm> {
  static variable_list forward(
      AutogradContext* context, const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
      Shape shape) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [output, mean, rstd] = at::native_group_norm(
        input, weight, bias, shape.batch, shape.channels, shape.pixels, shape.groups, shape.epsilon);
    context->save_for_backward({input, weight.value_or(Tensor()), bias.value_or(Tensor()), mean, rstd});
    context->saved_data["sizes"] = std::vector<int64_t>{shape.batch, shape.channels, shape.pixels, shape.groups};
    context->saved_data["epsilon"] = shape.epsilon;
    context->set_materialize_grads(false);
    return {output, mean, rstd};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto sizes = context->saved_data["sizes"].toIntVector();
    const Shape shape{sizes[0], sizes[1], sizes[2], sizes[3], context->saved_data["epsilon"].toDouble()};
    const bool plain = !at::GradMode::is_enabled() && !gradients[1].defined() && !gradients[2].defined();
    variable_list found = plain ? first_derivative(saved, gradients[0], shape) : any_derivative(saved, gradients, shape);
    found.emplace_back(); // of the shape
    return found;
  }

  static bool wants(const Tensor& tensor) {
    return tensor.defined() && tensor.requires_grad();
  }

  static variable_list first_derivative(const variable_list& saved, const Tensor& gradient, const Shape& shape) {
    if (!gradient.defined()) {
      return variable_list(3);
    }
    const auto format = saved[0].suggest_memory_format();
    const auto [of_input, of_weight, of_bias] = at::native_group_norm_backward(
        gradient.contiguous(format), saved[0].contiguous(format), saved[3], saved[4], saved[1], shape.batch,
        shape.channels, shape.pixels, shape.groups, {wants(saved[0]), wants(saved[1]), wants(saved[2])});
    return {of_input, of_weight, of_bias};
  }

  // A derivative that has one itself, or that of the mean: PyTorch's formula for these is the same everywhere.
  static variable_list any_derivative(const variable_list& saved, const variable_list& gradients, const Shape& shape) {
    const bool again = at::GradMode::is_enabled();
    const at::AutoGradMode with_grad(true);
    const auto [output, mean, rstd] = with_pytorchs_derivative(saved[0], saved[1], saved[2], shape);
    const variable_list results{output, mean, rstd};
    variable_list outputs;
    variable_list given;
    for (size_t i = 0; i < results.size(); ++i) {
      if (gradients[i].defined()) {
        outputs.push_back(results[i]);
        given.push_back(gradients[i]);
      }
    }
    variable_list wanted;
    std::copy_if(saved.begin(), saved.begin() + 3, std::back_inserter(wanted), wants);
    auto derivatives = torch::autograd::grad(outputs, wanted, given, again, again, /*allow_unused=*/true);
    variable_list found(3);
    for (size_t i = 0, next = 0; i < found.size(); ++i) {
      if (wants(saved[i])) {
        found[i] = derivatives[next++];
      }
    }
    return found;
  }
};

Results native_group_norm(
    const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, c10::SymInt batch,
    c10::SymInt channels, c10::SymInt pixels, int64_t groups, double epsilon) {
  const auto number = [](const c10::SymInt& size) { return size.guard_int(__FILE__, __LINE__); };
  const Shape shape{number(batch), number(channels), number(pixels), groups, epsilon};
  if (input.suggest_memory_format() == at::MemoryFormat::Contiguous || !at::GradMode::is_enabled()) {
    return with_pytorchs_derivative(input, weight, bias, shape);
  }
  const auto results = GroupNorm::apply(input, weight, bias, shape);
  return {results[0], results[1], results[2]};
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("native_group_norm", &native_group_norm);
}

} // namespace
} // namespace ferry

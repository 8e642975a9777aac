// Own kernels: the five operators of SyncBatchNorm, which PyTorch has for CUDA only. Statistics of half precision
// tensors are kept in float, as there.
#include "host_call.h"
#include "host_view.h"
#include "operators.h"
#include "reference.h"

#include <ATen/Functions.h>
#include <torch/library.h>

#include <optional>

namespace ferry {
namespace {

using at::Tensor;

at::ScalarType statistics_dtype(const Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// All dimensions but that of the channels.
std::vector<int64_t> reduced_dimensions(const Tensor& input) {
  std::vector<int64_t> dimensions{0};
  for (int64_t dimension = 2; dimension < input.dim(); ++dimension) {
    dimensions.push_back(dimension);
  }
  return dimensions;
}

// One number per channel, in a shape that meets each element of its channel.
Tensor by_channel(const Tensor& values, const Tensor& input) {
  std::vector<int64_t> shape(input.dim(), 1);
  shape[1] = values.numel();
  return values.to(statistics_dtype(input)).view(shape);
}

Tensor on_host(const Tensor& tensor) {
  return is_on_device(tensor) ? host_view(tensor) : tensor;
}

Tensor on_host(const std::optional<Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? on_host(*tensor) : Tensor();
}

// The inputs of a kernel on the host; results go back to where the input is.
class Inputs {
 public:
  Inputs(const char* name, const Tensor& input)
      : is_device_(is_on_device(input)), device_(input.device().index()), values_(on_host(input)) {
    if (is_device_) {
      passage_.emplace(name, "");
    }
  }

  const Tensor& raw() const {
    return values_;
  }

  Tensor numbers() const {
    return values_.to(statistics_dtype(values_));
  }

  Tensor to_device(const Tensor& result) const {
    return is_device_ ? adopt_host_tensor(result, device_) : result;
  }

  Tensor to_device_like_input(const Tensor& result) const {
    return to_device(result.to(values_.scalar_type()));
  }

 private:
  std::optional<Passage> passage_;
  HostOnly host_only_;
  Inside inside_;
  bool is_device_;
  c10::DeviceIndex device_;
  Tensor values_;
};

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps) {
  const Inputs inputs("aten::batch_norm_stats", input);
  const auto [variance, mean] = at::var_mean(inputs.numbers(), reduced_dimensions(input), /*unbiased=*/false);
  return {inputs.to_device(mean), inputs.to_device(variance.add_(eps).rsqrt_())};
}

Tensor normalized(
    const Inputs& inputs,
    const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias,
    const Tensor& mean,
    const Tensor& invstd) {
  const Tensor& raw = inputs.raw();
  Tensor result = inputs.numbers().sub(by_channel(on_host(mean), raw)).mul_(by_channel(on_host(invstd), raw));
  if (const Tensor scale = on_host(weight); scale.defined()) {
    result.mul_(by_channel(scale, raw));
  }
  if (const Tensor shift = on_host(bias); shift.defined()) {
    result.add_(by_channel(shift, raw));
  }
  return result;
}

Tensor batch_norm_elemt(
    const Tensor& input,
    const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias,
    const Tensor& mean,
    const Tensor& invstd,
    double /*eps*/) {
  const Inputs inputs("aten::batch_norm_elemt", input);
  return inputs.to_device_like_input(normalized(inputs, weight, bias, mean, invstd));
}

Tensor& batch_norm_elemt_out(
    const Tensor& input,
    const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias,
    const Tensor& mean,
    const Tensor& invstd,
    double eps,
    Tensor& out) {
  const Tensor result = ferry::batch_norm_elemt(input, weight, bias, mean, invstd, eps);
  return out.resize_(result.sizes()).copy_(result);
}

void move_towards(const std::optional<Tensor>& running, const Tensor& now, double momentum) {
  if (const Tensor host = on_host(running); host.defined()) {
    host.mul_(1 - momentum).add_(now.to(host.scalar_type()), momentum);
  }
}

std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts(
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const std::optional<Tensor>& running_mean,
    const std::optional<Tensor>& running_var,
    double momentum,
    double eps,
    const Tensor& counts) {
  const Inputs inputs("aten::batch_norm_gather_stats_with_counts", input);
  const at::ScalarType dtype = statistics_dtype(input);
  // A row for each rank, a column for each channel.
  const Tensor means = on_host(mean).to(dtype);
  const Tensor count = on_host(counts).to(dtype).view({-1, 1});
  const Tensor variances = on_host(invstd).to(dtype).pow(-2).sub_(eps);
  const double total = count.sum().item<double>();
  const Tensor all_mean = means.mul(count).sum(0).div_(total);
  const Tensor squares = variances.add_(means.sub(all_mean).square_()).mul_(count).sum(0);
  move_towards(running_mean, all_mean, momentum);
  move_towards(running_var, squares.div(total - 1), momentum);
  return {inputs.to_device(all_mean), inputs.to_device(squares.div(total).add_(eps).rsqrt_())};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(
    const Tensor& grad_out,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const std::optional<Tensor>& weight,
    bool input_g,
    bool weight_g,
    bool bias_g) {
  const Inputs inputs("aten::batch_norm_backward_reduce", input);
  const Tensor& raw = inputs.raw();
  const Tensor grad = on_host(grad_out).to(statistics_dtype(raw));
  const std::vector<int64_t> dimensions = reduced_dimensions(raw);
  const Tensor sum = grad.sum(dimensions);
  const Tensor product = inputs.numbers().sub(by_channel(on_host(mean), raw)).mul_(grad).sum(dimensions);
  const Tensor scale = on_host(weight);
  const at::ScalarType dtype = scale.defined() ? scale.scalar_type() : sum.scalar_type();
  const auto if_asked = [&](bool asked, const Tensor& result) { return asked ? inputs.to_device(result) : Tensor(); };
  return {
      if_asked(input_g, sum),
      if_asked(input_g, product),
      if_asked(weight_g, product.mul(on_host(invstd)).to(dtype)),
      if_asked(bias_g, sum.to(dtype, /*non_blocking=*/false, /*copy=*/true))};
}

Tensor batch_norm_backward_elemt(
    const Tensor& grad_out,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& invstd,
    const std::optional<Tensor>& weight,
    const Tensor& sum_dy,
    const Tensor& sum_dy_xmu,
    const Tensor& count) {
  const Inputs inputs("aten::batch_norm_backward_elemt", input);
  const Tensor& raw = inputs.raw();
  const double total = on_host(count).sum().item<double>();
  const Tensor inverse = on_host(invstd);
  const Tensor slope = on_host(sum_dy_xmu).div(total).mul_(inverse).mul_(inverse);
  Tensor result = inputs.numbers().sub(by_channel(on_host(mean), raw)).mul_(by_channel(slope, raw)).neg_();
  result.add_(on_host(grad_out)).sub_(by_channel(on_host(sum_dy).div(total), raw)).mul_(by_channel(inverse, raw));
  if (const Tensor scale = on_host(weight); scale.defined()) {
    result.mul_(by_channel(scale, raw));
  }
  return inputs.to_device_like_input(result);
}

void register_kernels(torch::Library& m) {
  m.impl("batch_norm_stats", &batch_norm_stats);
  m.impl("batch_norm_elemt", &batch_norm_elemt);
  m.impl("batch_norm_elemt.out", &batch_norm_elemt_out);
  m.impl("batch_norm_gather_stats_with_counts", &batch_norm_gather_stats_with_counts);
  m.impl("batch_norm_backward_reduce", &batch_norm_backward_reduce);
  m.impl("batch_norm_backward_elemt", &batch_norm_backward_elemt);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  register_kernels(m);
}

} // namespace

void add_sync_batch_norm() {
  static const auto* library = [] {
    auto* made = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    register_kernels(*made);
    return made;
  }();
  static_cast<void>(library);
}

} // namespace ferry

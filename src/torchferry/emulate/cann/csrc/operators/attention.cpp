#include "attention.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>
#include <tuple>

namespace cann::attention {
namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();
constexpr double kNothing = -std::numeric_limits<double>::infinity();

// The CPU's own kernel computes what has no extras: its results are then those of the same program on the CPU.
bool is_plain(const Sequence& of) {
  return !of.bias.defined() && !of.kept.defined() && !of.sink.defined() && of.query.numel() > 0 && of.key.numel() > 0 &&
      of.query.size(2) == of.value.size(2);
}

Tensor hidden_places(const Sequence& of) {
  if (!of.is_causal) {
    return of.hidden;
  }
  return at::ones({of.query.size(1), of.key.size(1)}, at::kBool).triu(1);
}

Tensor for_each_head(const Tensor& tensor, int64_t heads) {
  return tensor.size(0) == heads ? tensor : tensor.repeat_interleave(heads / tensor.size(0), 0);
}

Tensor over_shared_heads(const Tensor& grad, int64_t heads) {
  return grad.size(0) == heads ? grad : grad.unflatten(0, {heads, grad.size(0) / heads}).sum(1);
}

Tensor scores(const Sequence& of) {
  Tensor made = at::matmul(of.query, for_each_head(of.key, of.query.size(0)).transpose(1, 2));
  if (of.bias.defined() && of.bias_is_scaled) {
    made = made + of.bias;
  }
  made = made * of.scale;
  if (of.bias.defined() && !of.bias_is_scaled) {
    made = made + of.bias;
  }
  const Tensor hidden = hidden_places(of);
  return hidden.defined() ? made.masked_fill(hidden, kNothing) : made;
}

Tensor largest_of(const Sequence& of, const Tensor& scores) {
  Tensor largest = scores.size(2) == 0 ? at::zeros({scores.size(0), scores.size(1), 1}).fill_(kLowest) : scores.amax(-1, true);
  if (of.sink.defined()) {
    largest = largest.maximum(of.sink.view({-1, 1, 1}));
  }
  return largest.clamp_min(kLowest);
}

Tensor divided(const Tensor& exponentials, const Tensor& sum) {
  return at::where(sum == 0, exponentials.new_zeros({}), exponentials / sum);
}

Tensor dropped(const Sequence& of, const Tensor& probabilities) {
  return of.kept.defined() ? probabilities * of.kept / of.keep : probabilities;
}

using Plain = std::tuple<Tensor, Tensor>;

std::optional<Tensor> plain_mask(const Sequence& of) {
  if (!of.hidden.defined()) {
    return std::nullopt;
  }
  const Tensor mask = at::zeros(of.hidden.sizes(), of.query.scalar_type()).masked_fill_(of.hidden, kNothing);
  return of.hidden.dim() == 3 ? mask.unsqueeze(0) : mask;
}

Plain plain_forward(const Sequence& of) {
  const int64_t heads = of.query.size(0);
  return at::_scaled_dot_product_flash_attention_for_cpu(
      of.query.unsqueeze(0),
      for_each_head(of.key, heads).unsqueeze(0),
      for_each_head(of.value, heads).unsqueeze(0),
      0,
      of.is_causal,
      plain_mask(of),
      of.scale);
}

Gradients plain_backward(const Sequence& of, const Tensor& grad) {
  const int64_t heads = of.query.size(0);
  const auto [out, logarithms] = plain_forward(of);
  const auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad.unsqueeze(0),
      of.query.unsqueeze(0),
      for_each_head(of.key, heads).unsqueeze(0),
      for_each_head(of.value, heads).unsqueeze(0),
      out,
      logarithms,
      0,
      of.is_causal,
      plain_mask(of),
      of.scale);
  const auto shared = [](const Tensor& whole, const Tensor& like) { return over_shared_heads(whole.squeeze(0), like.size(0)); };
  return {query.squeeze(0), shared(key, of.key), shared(value, of.value), {}, {}};
}

} // namespace

Outcome forward(const Sequence& of) {
  const Tensor made = scores(of);
  const Tensor largest = largest_of(of, made);
  const Tensor exponentials = (made - largest).exp();
  Tensor sum = exponentials.sum(-1, true);
  if (of.sink.defined()) {
    sum = sum + (of.sink.view({-1, 1, 1}) - largest).exp();
  }
  if (is_plain(of)) {
    return {std::get<0>(plain_forward(of)).squeeze(0), largest, sum};
  }
  const Tensor probabilities = dropped(of, divided(exponentials, sum));
  return {at::matmul(probabilities, for_each_head(of.value, of.query.size(0))), largest, sum};
}

Gradients backward(const Sequence& of, const Tensor& grad, const Tensor& largest, const Tensor& sum) {
  if (is_plain(of)) {
    return plain_backward(of, grad);
  }
  const int64_t heads = of.query.size(0);
  const Tensor probabilities = divided((scores(of) - largest).exp(), sum);
  const Tensor of_value = at::matmul(dropped(of, probabilities).transpose(1, 2), grad);
  const Tensor of_probabilities = dropped(of, at::matmul(grad, for_each_head(of.value, heads).transpose(1, 2)));
  const Tensor mean = (of_probabilities * probabilities).sum(-1, true);
  const Tensor of_scores = probabilities * (of_probabilities - mean);
  Gradients made;
  made.query = at::matmul(of_scores, for_each_head(of.key, heads)) * of.scale;
  made.key = over_shared_heads(at::matmul(of_scores.transpose(1, 2), of.query) * of.scale, of.key.size(0));
  made.value = over_shared_heads(of_value, of.value.size(0));
  if (of.bias.defined()) {
    made.bias = of.bias_is_scaled ? of_scores * of.scale : of_scores;
  }
  if (of.sink.defined()) {
    made.sink = -(divided((of.sink.view({-1, 1, 1}) - largest).exp(), sum) * mean).sum({1, 2});
  }
  return made;
}

} // namespace cann::attention

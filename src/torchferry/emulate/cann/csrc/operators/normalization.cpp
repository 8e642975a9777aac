#include "optional.h"

#include <ATen/Functions.h>

// Statistics are kept by the plugin in single precision or in that of the input; ATen's CPU kernels want them in the weight's.

namespace {

using at::Tensor;
using cann::Aten;
using cann::IValue;
using cann::tensor_or_nothing;
using cann::script::write;
using cann::script::item;

IValue in_dtype_of(const IValue& statistics, const IValue& weight, const IValue& input) {
  const Tensor& like = weight.isNone() ? input.toTensor() : weight.toTensor();
  return statistics.isNone() ? statistics : IValue(statistics.toTensor().to(like.scalar_type()));
}

void write_all(const IValue& results, std::initializer_list<IValue> targets) {
  int64_t i = 0;
  for (const IValue& target : targets) {
    write(target, item(results, i++));
  }
}

// All dimensions but that of the channels.
std::vector<int64_t> without_channels(const Tensor& input) {
  std::vector<int64_t> dimensions{0};
  for (int64_t i = 2; i < input.dim(); ++i) {
    dimensions.push_back(i);
  }
  return dimensions;
}

// One number for each channel, beside a tensor with channels.
Tensor beside(const Tensor& input, const Tensor& of_channels) {
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[1] = input.size(1);
  return of_channels.to(at::kFloat).view(sizes);
}

Tensor in_single(const IValue& given) {
  return given.toTensor().to(at::kFloat);
}

Tensor weight_beside(const Tensor& input, const IValue& weight) {
  return weight.isNone() ? at::ones({}, at::kFloat) : beside(input, weight.toTensor());
}

void keep_running(const IValue& running, const Tensor& current, double momentum) {
  if (!running.isNone()) {
    running.toTensor().mul_(1 - momentum).add_(current.to(running.toTensor().scalar_type()), momentum);
  }
}

Tensor inverse_deviation(const Tensor& variance, double eps) {
  return variance.add(eps).rsqrt();
}

// The group norm of an input: result, mean and reciprocal of the deviation.
IValue group_norm(const IValue& input, const IValue& weight, const IValue& bias, int64_t groups, double eps) {
  static const Aten forward("aten::native_group_norm", "");
  const Tensor& x = input.toTensor();
  const int64_t batch = x.size(0);
  const int64_t channels = x.size(1);
  const int64_t rest = batch * channels == 0 ? 0 : x.numel() / (batch * channels);
  return forward({input, weight, bias, batch, channels, rest, groups, eps});
}

// x times the sigmoid of x times the scale.
Tensor swish(const Tensor& x, double scale) {
  return x.mul(x.mul(scale).sigmoid());
}

Tensor swish_slope(const Tensor& x, double scale) {
  const Tensor gate = x.mul(scale).sigmoid();
  return gate.add(x.mul(scale).mul(gate).mul(at::rsub(gate, 1)));
}

} // namespace

OPERATOR(aclnnBatchNorm) {
  static const Aten forward("aten::native_batch_norm", "");
  static const Aten into("aten::native_batch_norm", "out");
  const bool training = a[5].toBool();
  const bool is_single = a[0].toTensor().scalar_type() == at::kFloat;
  if (training && is_single) {
    into({a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]}, {{"out", a[8]}, {"save_mean", a[9]}, {"save_invstd", a[10]}});
    return;
  }
  const IValue found = forward({a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]});
  write(a[8], item(found, 0));
  if (training) { // otherwise there are none
    write(a[9], item(found, 1));
    write(a[10], item(found, 2));
  }
}

OPERATOR(aclnnBatchNormBackward) {
  static const Aten backward("aten::native_batch_norm_backward", "");
  const IValue mean = in_dtype_of(a[5], a[2], a[1]);
  const IValue invstd = in_dtype_of(a[6], a[2], a[1]);
  write_all(backward({a[0], a[1], a[2], a[3], a[4], mean, invstd, a[7], a[8], a[9]}), {a[10], a[11], a[12]});
}

OPERATOR(aclnnBatchNormStats) {
  const Tensor input = in_single(a[0]);
  const auto [variance, mean] = at::var_mean(input, without_channels(input), std::make_optional<at::Scalar>(0));
  write(a[2], mean);
  write(a[3], inverse_deviation(variance, a[1].toDouble()));
}

OPERATOR(aclnnBatchNormElemt) {
  const Tensor input = in_single(a[0]);
  const Tensor scale = beside(input, a[4].toTensor()).mul(weight_beside(input, a[1]));
  const Tensor centred = input.sub(beside(input, a[3].toTensor())).mul(scale);
  write(a[6], a[2].isNone() ? centred : centred.add(beside(input, a[2].toTensor())));
}

OPERATOR(aclnnBatchNormElemtBackward) {
  const Tensor input = in_single(a[1]);
  const Tensor invstd = beside(input, a[3].toTensor());
  const Tensor count = a[7].toTensor().sum().to(at::kFloat);
  const Tensor mean_dy = beside(input, a[5].toTensor().to(at::kFloat).div(count));
  const Tensor mean_dy_xmu = beside(input, a[6].toTensor().to(at::kFloat).div(count));
  const Tensor centred = input.sub(beside(input, a[2].toTensor()));
  const Tensor slope = in_single(a[0]).sub(mean_dy).sub(centred.mul(invstd.mul(invstd).mul(mean_dy_xmu)));
  write(a[8], slope.mul(invstd).mul(weight_beside(input, a[4])));
}

OPERATOR(aclnnBatchNormReduce) {
  const Tensor input = in_single(a[0]);
  write(a[1], input.sum(without_channels(input)));
  write(a[2], input.mul(input).sum(without_channels(input)));
}

OPERATOR(aclnnBatchNormReduceBackward) {
  const Tensor input = in_single(a[1]);
  const Tensor grad = in_single(a[0]);
  const auto dimensions = without_channels(input);
  const Tensor sum_dy = grad.sum(dimensions);
  const Tensor sum_dy_xmu = grad.mul(input.sub(beside(input, a[2].toTensor()))).sum(dimensions);
  if (a[5].toBool()) {
    write(a[8], sum_dy);
    write(a[9], sum_dy_xmu);
  }
  if (a[6].toBool()) {
    write(a[10], sum_dy_xmu.mul(in_single(a[3])));
  }
  if (a[7].toBool()) {
    write(a[11], sum_dy);
  }
}

// Means and deviations of several processes, each of so many elements, as those of them all.
OPERATOR(aclnnBatchNormGatherStatsWithCounts) {
  const double momentum = a[5].toDouble();
  const double eps = a[6].toDouble();
  const Tensor means = in_single(a[1]);
  const Tensor counts = in_single(a[7]).reshape({-1, 1});
  const Tensor total = counts.sum();
  const Tensor mean = means.mul(counts).sum(0).div(total);
  const Tensor variances = in_single(a[2]).pow(-2).sub(eps);
  const Tensor squares = variances.add(means.sub(mean).pow(2)).mul(counts).sum(0);
  keep_running(a[3], mean, momentum);
  keep_running(a[4], squares.div(total.sub(1)), momentum);
  write(a[8], mean);
  write(a[9], inverse_deviation(squares.div(total), eps));
}

// Sums and sums of squares of several processes, each of so many elements.
OPERATOR(aclnnSyncBatchNormGatherStats) {
  const double momentum = a[5].toDouble();
  const Tensor total = a[2].toTensor().sum().to(at::kFloat);
  const Tensor mean = in_single(a[0]).sum(0).div(total);
  const Tensor variance = in_single(a[1]).sum(0).div(total).sub(mean.mul(mean));
  keep_running(a[3], mean, momentum);
  keep_running(a[4], variance.mul(total.div(total.sub(1))), momentum);
  write(a[7], mean);
  write(a[8], inverse_deviation(variance, a[6].toDouble()));
}

OPERATOR(aclnnLayerNorm) {
  static const Aten forward("aten::native_layer_norm", "");
  write_all(forward({a[0], a[1], a[2], a[3], a[4]}), {a[5], a[6], a[7]});
}

OPERATOR(aclnnFastLayerNorm) {
  compute_aclnnLayerNorm(a);
}

OPERATOR(aclnnLayerNormBackward) {
  static const Aten backward("aten::native_layer_norm_backward", "");
  const IValue mean = in_dtype_of(a[3], a[5], a[1]);
  const IValue rstd = in_dtype_of(a[4], a[5], a[1]);
  write_all(backward({a[0], a[1], a[2], mean, rstd, a[5], a[6], a[7]}), {a[8], a[9], a[10]});
}

OPERATOR(aclnnGroupNorm) {
  static const Aten forward("aten::native_group_norm", "");
  write_all(forward({a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]}), {a[8], a[9], a[10]});
}

OPERATOR(aclnnGroupNormBackward) {
  static const Aten backward("aten::native_group_norm_backward", "");
  const IValue mean = in_dtype_of(a[2], a[4], a[1]);
  const IValue rstd = in_dtype_of(a[3], a[4], a[1]);
  write_all(backward({a[0], a[1], mean, rstd, a[4], a[5], a[6], a[7], a[8], a[9]}), {a[10], a[11], a[12]});
}

OPERATOR(aclnnGroupNormSilu) {
  static const Aten silu("aten::silu", "");
  const IValue found = group_norm(a[0], a[1], a[2], a[3].toInt(), a[4].toDouble());
  write(a[5], silu({item(found, 0)}));
  write(a[6], item(found, 1));
  write(a[7], item(found, 2));
}

OPERATOR(aclnnGroupNormSwish) {
  const IValue found = group_norm(a[0], a[1], a[2], a[3].toInt(), a[5].toDouble());
  const Tensor normal = item(found, 0).toTensor();
  write(a[8], a[6].toBool() ? swish(normal, a[7].toDouble()) : normal);
  write(a[9], item(found, 1));
  write(a[10], item(found, 2));
}

OPERATOR(aclnnGroupNormSwishGrad) {
  static const Aten backward("aten::native_group_norm_backward", "");
  const Tensor x = in_single(a[3]);
  const Tensor weight = in_single(a[4]);
  const Tensor mean = in_single(a[1]);
  const Tensor rstd = in_single(a[2]);
  const int64_t groups = a[6].toInt();
  const Tensor grouped = x.reshape({x.size(0), groups, -1});
  const Tensor centred = grouped.sub(mean.view({x.size(0), groups, 1})).mul(rstd.view({x.size(0), groups, 1}));
  const Tensor normal = centred.view(x.sizes()).mul(beside(x, weight)).add(beside(x, a[5].toTensor()));
  const Tensor grad = in_single(a[0]).mul(swish_slope(normal, a[8].toDouble()));
  const int64_t rest = x.numel() / (x.size(0) * x.size(1));
  const c10::List<bool> wanted({true, a[9].toBool(), a[10].toBool()});
  write_all(
      backward({grad, x, mean.contiguous(), rstd.contiguous(), weight, x.size(0), x.size(1), rest, groups, wanted}),
      {a[11], a[12], a[13]});
}

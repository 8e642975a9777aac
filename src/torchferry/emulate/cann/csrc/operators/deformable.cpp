#include "deformable.h"

#include <ATen/Functions.h>

#include "builtins_networks.h"
#include "gradients.h"
#include "optional.h"

namespace cann::deformable {
namespace {

// Places of the kernel's elements without offsets: (elements, outputs), along one dimension.
Tensor regular_places(const Tensor& element, const Tensor& output, int64_t dilation, int64_t stride, int64_t padding) {
  return element.mul(dilation).view({-1, 1, 1}).add(output.mul(stride)).sub(padding);
}

// What is at whole places, 0 outside: (batch, groups, channels of a group, places).
Tensor at_places(const Tensor& input, const Tensor& row, const Tensor& column) {
  const int64_t height = input.size(3);
  const int64_t width = input.size(4);
  const Tensor inside = row.ge(0).logical_and(row.lt(height)).logical_and(column.ge(0)).logical_and(column.lt(width));
  const Tensor place = row.clamp(0, height - 1).mul(width).add(column.clamp(0, width - 1)).to(at::kLong);
  const Tensor flat = input.reshape({input.size(0), input.size(1), input.size(2), height * width});
  const Tensor found = flat.gather(3, place.unsqueeze(2).expand({-1, -1, input.size(2), -1}));
  return found.mul(inside.unsqueeze(2).to(input.scalar_type()));
}

Tensor interpolated(const Tensor& input, const Tensor& row, const Tensor& column) {
  const Tensor above = row.floor().detach();
  const Tensor left = column.floor().detach();
  const Tensor down = row.sub(above).unsqueeze(2);
  const Tensor right = column.sub(left).unsqueeze(2);
  const Tensor up = at::rsub(down, 1);
  const Tensor beside = at::rsub(right, 1);
  return at_places(input, above, left)
      .mul(up.mul(beside))
      .add(at_places(input, above, left.add(1)).mul(up.mul(right)))
      .add(at_places(input, above.add(1), left).mul(down.mul(beside)))
      .add(at_places(input, above.add(1), left.add(1)).mul(down.mul(right)));
}

} // namespace

Tensor sampled(const Window& window, const Tensor& input, const Tensor& offsets) {
  const int64_t batch = input.size(0);
  const int64_t groups = window.groups;
  const int64_t height = window.kernel[0];
  const int64_t width = window.kernel[1];
  const int64_t rows = offsets.size(2);
  const int64_t columns = offsets.size(3);
  const Tensor parts = offsets.reshape({batch, 3, groups, height * width, rows, columns});
  const Tensor elements = at::arange(height * width);
  const Tensor down = regular_places(
      elements.div(width, "floor"), at::arange(rows).view({1, -1, 1}), window.dilation[0], window.stride[0], window.padding[0]);
  const Tensor across = regular_places(
      elements.remainder(width), at::arange(columns).view({1, 1, -1}), window.dilation[1], window.stride[1], window.padding[2]);
  const Tensor row = parts.select(1, 1).add(down).reshape({batch, groups, -1});
  const Tensor column = parts.select(1, 0).add(across).reshape({batch, groups, -1});
  const Tensor grouped = input.reshape({batch, groups, input.size(1) / groups, input.size(2), input.size(3)});
  const Tensor factor = parts.select(1, 2).reshape({batch, groups, 1, -1});
  return interpolated(grouped, row, column)
      .mul(factor)
      .reshape({batch, input.size(1), height, width, rows, columns})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape({batch, input.size(1), rows * height, columns * width});
}

} // namespace cann::deformable

namespace {

using at::Tensor;
using cann::IValue;
using cann::Tensors;
using cann::deformable::sampled;
using cann::deformable::Window;
using cann::script::write;

std::vector<int64_t> spatial(const IValue& of_four) {
  const auto given = of_four.toIntVector();
  return {given[2], given[3]};
}

Tensor in_single(const IValue& given) {
  return given.toTensor().to(at::kFloat);
}

// Its elements lie beside each other once they are sampled: a kernel that steps by its own size.
Tensor convolved(const Tensor& samples, const Tensor& weight, const Tensor& bias, const std::vector<int64_t>& kernel, int64_t groups) {
  return at::conv2d(samples, weight, bias, kernel, at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1}, groups);
}

} // namespace

OPERATOR(aclnnDeformableConv2d) {
  const Window window{a[4].toIntVector(), spatial(a[5]), spatial(a[7]), a[6].toIntVector(), a[9].toInt()};
  const Tensor samples = sampled(window, in_single(a[0]), in_single(a[2]));
  const Tensor bias = a[3].isNone() ? Tensor() : in_single(a[3]);
  write(a[11], convolved(samples, in_single(a[1]), bias, window.kernel, a[8].toInt()));
  write(a[12], samples);
}

OPERATOR(aclnnDeformableConv2dBackward) {
  const Window window{a[5].toIntVector(), spatial(a[6]), spatial(a[8]), a[7].toIntVector(), a[10].toInt()};
  const auto compute = [&](const Tensors& given) {
    const Tensor samples = sampled(window, given[0], given[2]);
    return Tensors{convolved(samples, given[1], given[3], window.kernel, a[9].toInt())};
  };
  const Tensor bias = at::zeros({a[3].toTensor().size(0)}, at::kFloat);
  const Tensors found = cann::gradients(compute, {in_single(a[0]), in_single(a[3]), in_single(a[4]), bias}, {in_single(a[1])});
  for (size_t i = 0; i < found.size(); ++i) {
    write(a[12 + i], found[i]);
  }
}

namespace cann::builtins {
namespace {

// Of the numbers for batch, height, width and channels those of height and width.
std::vector<int64_t> middle(const IValue& of_four) {
  const auto given = of_four.toIntVector();
  return {given[1], given[2]};
}

Tensor channels_second(const IValue& channels_last) {
  return in_single(channels_last).permute({0, 3, 1, 2}).contiguous();
}

Tensor channels_last(const Tensor& channels_second) {
  return channels_second.permute({0, 2, 3, 1});
}

} // namespace

IValue dimensions_in(const IValue& tensor) {
  const Tensor whole = tensor.toTensor().to(at::kLong).contiguous();
  return std::vector<int64_t>(whole.const_data_ptr<int64_t>(), whole.const_data_ptr<int64_t>() + whole.numel());
}

IValue deformed(
    const IValue& input,
    const IValue& offsets,
    const IValue& kernel,
    const IValue& strides,
    const IValue& padding,
    const IValue& dilations,
    const IValue& groups) {
  const Window window{kernel.toIntVector(), middle(strides), middle(dilations), padding.toIntVector(), groups.toInt()};
  return channels_last(sampled(window, channels_second(input), channels_second(offsets)));
}

IValue deformed_backward(
    const IValue& grad,
    const IValue& input,
    const IValue& offsets,
    const IValue& kernel,
    const IValue& strides,
    const IValue& padding,
    const IValue& dilations,
    const IValue& groups) {
  const Window window{kernel.toIntVector(), middle(strides), middle(dilations), padding.toIntVector(), groups.toInt()};
  const auto compute = [&](const Tensors& given) { return Tensors{sampled(window, given[0], given[1])}; };
  const Tensors found = gradients(compute, {channels_second(input), channels_second(offsets)}, {channels_second(grad)});
  return c10::List<Tensor>({channels_last(found[0]), channels_last(found[1])});
}

} // namespace cann::builtins

// Elements by their places.
#include "builtins_moving.h"
#include "native.h"

#include <ATen/ops/_index_put_impl.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/index.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

namespace {

using at::Tensor;
using Indices = c10::List<std::optional<Tensor>>;

// The plugin says "all of this dimension" by an empty tensor. An index that is truly empty leaves nothing to move.
Indices indices_of(const c10::IValue& list) {
  Indices indices;
  for (const Tensor& index : list.toTensorVector()) {
    const bool is_given = index.defined() && index.numel() > 0;
    indices.push_back(is_given ? std::make_optional(index) : std::nullopt);
  }
  return indices;
}

std::vector<int64_t> whole_list(const Tensor& numbers) {
  const Tensor flat = numbers.reshape({-1}).to(at::kLong).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

// Of memory, sizes, strides and an offset.
Tensor view_of(const std::vector<Tensor>& given, size_t begin) {
  const Tensor memory = given[begin].reshape({-1});
  return memory.as_strided(
      whole_list(given[begin + 1]), whole_list(given[begin + 2]), whole_list(given[begin + 3]).at(0));
}

bool has_any(const Indices& indices) {
  return std::any_of(indices.begin(), indices.end(), [](const std::optional<Tensor>& index) { return index.has_value(); });
}

} // namespace

namespace cann::builtins {

IValue fill_front(const IValue& target, const IValue& result) {
  if (!target.isTensor() || !result.isTensor()) {
    return {};
  }
  const Tensor& room = target.toTensor();
  const Tensor& given = result.toTensor();
  if (!room.defined() || room.numel() < given.numel()) {
    return {}; // not wanted
  }
  room.unsafeGetTensorImpl()->set_sizes_contiguous(given.sizes());
  room.copy_(given);
  return {};
}

IValue whole_numbers(const IValue& list) {
  return at::tensor(list.toIntVector(), at::kLong);
}

IValue numbers(const IValue& values) {
  if (!values.isTensor()) {
    return values;
  }
  const Tensor flat = values.toTensor().reshape({-1});
  c10::impl::GenericList list(c10::NumberType::get());
  for (int64_t i = 0; i < flat.numel(); ++i) {
    list.push_back(IValue(flat[i].item()));
  }
  return list;
}

IValue copy_view(const IValue& inputs) {
  const std::vector<Tensor> given = inputs.toTensorVector();
  TORCH_CHECK(given.size() == 8, "ViewCopy with ", given.size(), " inputs instead of 8");
  view_of(given, 0).copy_(view_of(given, 4));
  return {};
}

IValue infinity() {
  return std::numeric_limits<double>::infinity();
}

} // namespace cann::builtins

OPERATOR(aclnnIndex) {
  const Tensor out = a[2].toTensor();
  if (out.numel() > 0) {
    out.copy_(at::index(a[0].toTensor(), indices_of(a[1])));
  }
}

OPERATOR(aclnnIndexPutImpl) {
  const Indices indices = indices_of(a[1]);
  if (has_any(indices)) {
    Tensor self = a[0].toTensor();
    at::_index_put_impl_(self, indices, a[2].toTensor(), /*accumulate=*/a[3].toBool(), /*unsafe=*/a[4].toBool());
  }
}

#include "optional.h"

// The mask that the plugin allots has two bytes or more for each output and each element of the kernel. From four elements on
// that is room for the places of the largest ones; for smaller kernels they are found again in the backward pass.

namespace {

using at::Tensor;
using cann::IValue;

const cann::Aten& pool() {
  static const cann::Aten operation("aten::max_pool2d_with_indices", "");
  return operation;
}

// The memory of the mask as places; undefined where there is not enough.
Tensor places_in(const Tensor& mask, const Tensor& out) {
  const auto needed = out.numel() * static_cast<int64_t>(sizeof(int64_t));
  if (!mask.is_contiguous() || mask.numel() < needed) {
    return Tensor();
  }
  return mask.view({-1}).narrow(0, 0, needed).view(at::kLong).view(out.sizes());
}

} // namespace

OPERATOR(aclnnMaxPool2dWithMask) {
  const Tensor out = a[6].toTensor();
  const Tensor places = places_in(a[7].toTensor(), out);
  if (places.defined() && out.scalar_type() == at::kFloat) {
    static const cann::Aten into("aten::max_pool2d_with_indices", "out");
    into({a[0], a[1], a[2], a[3], a[4], a[5]}, {{"out", out}, {"indices", places}});
    return;
  }
  const IValue found = pool()({a[0], a[1], a[2], a[3], a[4], a[5]});
  cann::script::write(out, cann::script::item(found, 0));
  if (places.defined()) {
    cann::script::write(places, cann::script::item(found, 1));
  }
}

OPERATOR(aclnnMaxPool2dWithMaskBackward) {
  static const cann::Aten backward("aten::max_pool2d_with_indices_backward", "grad_input");
  IValue places = places_in(a[2].toTensor(), a[0].toTensor());
  if (!places.toTensor().defined()) {
    places = cann::script::item(pool()({a[1], a[3], a[4], a[5], a[6], a[7]}), 1);
  }
  backward({a[0], a[1], a[3], a[4], a[5], a[6], a[7], places}, {{"grad_input", a[8]}});
}

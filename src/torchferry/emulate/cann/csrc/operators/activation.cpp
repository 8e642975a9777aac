#include "optional.h"

namespace {

using at::Tensor;

// One weight for each channel, which is the second dimension, or one for all.
Tensor for_channels(const Tensor& weight, const Tensor& self) {
  std::vector<int64_t> sizes(static_cast<size_t>(self.dim()), 1);
  if (sizes.size() > 1) {
    sizes[1] = weight.numel();
  }
  return weight.reshape(sizes);
}

} // namespace

OPERATOR(aclnnPrelu) {
  static const cann::Aten prelu("aten::_prelu_kernel", "");
  const Tensor self = a[0].toTensor();
  cann::script::write(a[2], prelu({self, for_channels(a[1].toTensor(), self)}));
}

OPERATOR(aclnnPreluBackward) {
  static const cann::Aten backward("aten::_prelu_kernel_backward", "");
  const Tensor self = a[1].toTensor();
  const Tensor weight = for_channels(a[2].toTensor(), self);
  const cann::IValue found = backward({a[0], self, weight});
  cann::script::write(a[3], cann::script::item(found, 0));
  cann::script::write(a[4], cann::script::item(found, 1).toTensor().sum_to_size(weight.sizes()));
}

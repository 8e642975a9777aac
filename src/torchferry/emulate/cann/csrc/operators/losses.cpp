#include "gradients.h"
#include "optional.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

namespace {

using at::Tensor;
using cann::tensor_or_nothing;
using cann::Tensors;
using cann::script::write;

Tensor gradient(const std::function<Tensor(const Tensor&)>& loss, const Tensor& by, const Tensor& of_loss) {
  return cann::gradients([&](const Tensors& given) { return Tensors{loss(given[0])}; }, {by}, {of_loss})[0];
}

// The gradients of each loss are handed over as one number, or as one for each element.
Tensor of_loss(const Tensor& given, const Tensor& self, int64_t reduction) {
  return reduction == at::Reduction::None ? given.expand(self.sizes()) : given.reshape({});
}

int64_t reduction_of(const std::string& name) {
  if (name == "mean") {
    return at::Reduction::Mean;
  }
  TORCH_CHECK(name == "sum" || name == "none", "there is no reduction ", name);
  return name == "sum" ? at::Reduction::Sum : at::Reduction::None;
}

} // namespace

OPERATOR(aclnnL1LossBackward) {
  const Tensor self = a[1].toTensor();
  const auto loss = [&](const Tensor& input) { return at::l1_loss(input, a[2].toTensor(), a[3].toInt()); };
  write(a[4], gradient(loss, self, of_loss(a[0].toTensor(), self, a[3].toInt())));
}

OPERATOR(aclnnBinaryCrossEntropyWithLogitsBackward) {
  const Tensor self = a[1].toTensor();
  const auto loss = [&](const Tensor& input) {
    return at::binary_cross_entropy_with_logits(
        input, a[2].toTensor(), tensor_or_nothing(a[3]), tensor_or_nothing(a[4]), a[5].toInt());
  };
  write(a[6], gradient(loss, self, of_loss(a[0].toTensor(), self, a[5].toInt())));
}

OPERATOR(aclnnKlDivBackward) {
  const Tensor self = a[1].toTensor();
  const auto loss = [&](const Tensor& input) { return at::kl_div(input, a[2].toTensor(), a[3].toInt(), a[4].toBool()); };
  write(a[5], gradient(loss, self, of_loss(a[0].toTensor(), self, a[3].toInt())));
}

OPERATOR(aclnnKlDivTargetBackward) {
  const Tensor self = a[1].toTensor();
  const auto loss = [&](const Tensor& target) { return at::kl_div(self, target, a[3].toInt(), a[4].toBool()); };
  write(a[5], gradient(loss, a[2].toTensor(), of_loss(a[0].toTensor(), self, a[3].toInt())));
}

OPERATOR(aclnnCrossEntropyLoss) {
  TORCH_CHECK(!a[7].toBool() && a[6].toDouble() == 0, "the loss of the logarithm's sum is not computed");
  const Tensor logits = a[0].toTensor().to(at::kFloat);
  const Tensor target = a[1].toTensor().to(at::kLong);
  const int64_t reduction = reduction_of(a[3].toStringRef());
  write(
      a[8], at::cross_entropy_loss(logits, target, tensor_or_nothing(a[2]), reduction, a[4].toInt(), a[5].toDouble()));
  write(a[9], logits.log_softmax(1));
}

OPERATOR(aclnnCrossEntropyLossGrad) {
  // The logarithms of probabilities are logits of the same loss, with the same gradients.
  const Tensor logits = a[1].toTensor().to(at::kFloat);
  const Tensor target = a[2].toTensor().to(at::kLong);
  const int64_t reduction = reduction_of(a[6].toStringRef());
  const auto loss = [&](const Tensor& input) {
    return at::cross_entropy_loss(input, target, tensor_or_nothing(a[3]), reduction, a[7].toInt(), a[8].toDouble());
  };
  const Tensor given = a[0].toTensor().to(at::kFloat);
  write(a[10], gradient(loss, logits, reduction == at::Reduction::None ? given : given.reshape({})));
}

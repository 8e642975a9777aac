#include "optional.h"

#include <ATen/ops/where.h>

OPERATOR(aclnnOneHot) {
  static const cann::Aten one_hot("aten::one_hot", "");
  const at::Tensor classes = a[0].toTensor();
  const int64_t count = a[1].toInt();
  // A class that is not there has a row without its mark.
  const at::Tensor inside = classes.ge(0).logical_and(classes.lt(count));
  const at::Tensor marks = one_hot({classes.clamp(0, count - 1).to(at::kLong), count}).toTensor().to(at::kBool);
  const at::Tensor chosen = at::where(marks.logical_and(inside.unsqueeze(-1)), a[2].toTensor(), a[3].toTensor());
  const int64_t axis = a[4].toInt();
  cann::script::write(a[5], chosen.movedim(-1, axis < 0 ? axis : std::min(axis, classes.dim())));
}

OPERATOR(aclnnEmbeddingBag) {
  static const cann::Aten bag("aten::_embedding_bag", "");
  const cann::IValue found = bag({a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]});
  for (int64_t i = 0; i < 4; ++i) {
    const cann::IValue result = cann::script::item(found, i);
    // What the plugin allots and the mode has no use for is left as it is.
    if (result.toTensor().numel() == a[9 + i].toTensor().numel()) {
      cann::script::write(a[9 + i], result);
    }
  }
}

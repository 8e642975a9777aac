#include "builtins_networks.h"
#include "optional.h"

#include <ATen/ops/where.h>

namespace cann::builtins {

IValue marked_classes(const IValue& classes, const IValue& count, const IValue& on, const IValue& off, const IValue& axis) {
  static const Aten one_hot("aten::one_hot", "");
  const at::Tensor given = classes.toTensor().to(at::kLong);
  // A class that is not there has a row without its mark.
  const at::Tensor inside = given.ge(0).logical_and(given.lt(count.toInt()));
  const at::Tensor marks = one_hot({given.clamp(0, count.toInt() - 1), count}).toTensor().to(at::kBool);
  const at::Tensor chosen = at::where(marks.logical_and(inside.unsqueeze(-1)), on.toTensor(), off.toTensor());
  return chosen.movedim(-1, axis.toInt() < 0 ? -1 : std::min(axis.toInt(), given.dim()));
}

} // namespace cann::builtins

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

#include "gradients.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/AutogradState.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>

namespace cann {
namespace {

using at::Tensor;

Tensors leaves(const Tensors& inputs) {
  Tensors made;
  for (const Tensor& input : inputs) {
    made.push_back(input.defined() ? input.detach().requires_grad_(at::isFloatingType(input.scalar_type())) : input);
  }
  return made;
}

} // namespace

Tensors gradients(const std::function<Tensors(const Tensors&)>& compute, const Tensors& inputs, const Tensors& of_results) {
  const c10::impl::ForceDispatchKeyGuard as_a_new_thread(c10::impl::LocalDispatchKeySet(c10::impl::PODLocalDispatchKeySet{0, 0}));
  const c10::AutoGradMode recording(true);
  const Tensors given = leaves(inputs);
  Tensors results;
  Tensors of_them;
  const Tensors all = compute(given);
  for (size_t i = 0; i < all.size(); ++i) {
    if (of_results[i].defined() && all[i].requires_grad()) {
      results.push_back(all[i]);
      of_them.push_back(of_results[i]);
    }
  }
  Tensors wanted;
  for (const Tensor& one : given) {
    if (one.defined() && one.requires_grad()) {
      wanted.push_back(one);
    }
  }
  const Tensors found = torch::autograd::grad(results, wanted, of_them, std::nullopt, false, /*allow_unused=*/true);
  Tensors answer;
  size_t next = 0;
  for (const Tensor& one : given) {
    answer.push_back(one.defined() && one.requires_grad() ? found[next++] : Tensor());
  }
  return answer;
}

} // namespace cann

#include "layouts.h"

#include "host_call.h"
#include "host_view.h"
#include "operators.h"
#include "wording.h"

#include <ATen/NestedTensorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/native/nested/NestedTensorUtils.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <mutex>
#include <set>

namespace ferry {
namespace {

using at::Tensor;
using c10::DispatchKey;
using torch::jit::Stack;

struct SparseSupport {
  Verdict missing = Verdict::raises;
  std::string raises = "'{operator}' is not supported on sparse tensors.";
  std::string falls_back = "'{operator}' on sparse tensors runs on the CPU.";
  std::set<std::string> kernels;
  std::set<std::string> warned;
  std::mutex lock;
};

SparseSupport& sparse_support() {
  static auto* support = new SparseSupport();
  return *support;
}

void check_sparse_operator(const std::string& name) {
  SparseSupport& support = sparse_support();
  std::unique_lock<std::mutex> guard(support.lock);
  if (!limits_on() || support.kernels.count(name) > 0) {
    return;
  }
  if (support.missing == Verdict::raises) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, fill_in(support.raises, {{"operator", name}}));
  }
  if (support.warned.insert(name).second) {
    const std::string warning = fill_in(support.falls_back, {{"operator", name}});
    guard.unlock();
    TORCH_WARN(warning);
  }
}

Tensor sparse_like(const at::SparseTensorImpl& like, DispatchKey key, const Tensor& indices, const Tensor& values) {
  Tensor made = at::detail::make_tensor<at::SparseTensorImpl>(c10::DispatchKeySet(key), like.dtype());
  auto* impl = at::sparse::get_sparse_impl(made);
  impl->raw_resize_(like.sparse_dim(), like.dense_dim(), like.sizes());
  impl->set_indices_and_values_unsafe(indices, values);
  impl->set_coalesced(like.coalesced());
  return made;
}

Tensor nested_like(const at::native::NestedTensorImpl& like, const Tensor& buffer) {
  return at::detail::make_tensor<at::native::NestedTensorImpl>(
      buffer, like.get_nested_sizes(), like.get_nested_strides(), like.get_storage_offsets());
}

Tensor buffer_of(const Tensor& nested) {
  return at::native::get_nested_tensor_impl(nested)->get_unsafe_storage_as_tensor();
}

void call_sparse_on_host(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
  check_sparse_operator(operator_of(handle).name);
  call_host_kernel(handle, stack, DispatchKey::SparseCPU);
}

void call_nested_on_host(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack* stack) {
  const Passage passage(operator_of(handle));
  call_host_kernel(handle, stack, DispatchKey::NestedTensorCPU);
}

void refuse_compressed(const c10::OperatorHandle& handle, c10::DispatchKeySet, Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false,
      "'", operator_of(handle).name, "' on a compressed sparse tensor (CSR, CSC, BSR, BSC): the simulated device has "
      "none. Keep the tensor on the CPU, or make it dense first with .to_dense().");
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&call_sparse_on_host>());
}

TORCH_LIBRARY_IMPL(_, NestedTensorPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&call_nested_on_host>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse_compressed>());
}

template <auto kernel>
void route(DispatchKey from, DispatchKey to) {
  auto* library = new torch::Library(torch::Library::IMPL, "aten", from, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (op.has_value() && name.getNamespace() == "aten" && op->hasKernelForDispatchKey(to)) {
      library->impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<kernel>());
    }
  }
}

} // namespace

bool is_composed(const Tensor& tensor) {
  return tensor.is_nested() || tensor.layout() == c10::kSparse;
}

Tensor host_view_of_composed(const Tensor& device_tensor) {
  if (device_tensor.is_nested()) {
    return nested_like(*at::native::get_nested_tensor_impl(device_tensor), host_view(buffer_of(device_tensor)));
  }
  const auto& impl = *at::sparse::get_sparse_impl(device_tensor);
  return sparse_like(impl, DispatchKey::SparseCPU, host_view(impl.indices()), host_view(impl.values()));
}

Tensor adopt_composed(const Tensor& host, c10::DeviceIndex device) {
  const c10::DeviceGuard guard(c10::Device(c10::DeviceType::PrivateUse1, device));
  if (host.is_nested()) {
    return nested_like(*at::native::get_nested_tensor_impl(host), adopt_host_tensor(buffer_of(host), device));
  }
  check_sparse_operator("aten::_sparse_coo_tensor_with_dims_and_tensors");
  const auto& impl = *at::sparse::get_sparse_impl(host);
  return sparse_like(
      impl, DispatchKey::SparsePrivateUse1, adopt_host_tensor(impl.indices(), device),
      adopt_host_tensor(impl.values(), device));
}

void follow_composed(const Tensor& device_tensor, const Tensor& host) {
  if (device_tensor.is_nested()) {
    return; // written in its own bytes only
  }
  auto& impl = *at::sparse::get_sparse_impl(device_tensor);
  const auto& seen = *at::sparse::get_sparse_impl(host);
  const auto follow = [&](const Tensor& ours, const Tensor& theirs) {
    const bool same = host_view(ours).storage().is_alias_of(theirs.storage()) && ours.sizes() == theirs.sizes();
    return same ? ours : adopt_host_tensor(theirs, device_tensor.device().index());
  };
  const Tensor indices = follow(impl.indices(), seen.indices());
  const Tensor values = follow(impl.values(), seen.values());
  impl.raw_resize_(seen.sparse_dim(), seen.dense_dim(), seen.sizes());
  impl.set_indices_and_values_unsafe(indices, values);
  impl.set_coalesced(seen.coalesced());
}

std::vector<std::pair<Tensor, Tensor>> parts_of(const Tensor& device_tensor, const Tensor& host) {
  if (device_tensor.is_nested()) {
    return {{buffer_of(device_tensor), buffer_of(host)}};
  }
  const auto& impl = *at::sparse::get_sparse_impl(device_tensor);
  const auto& seen = *at::sparse::get_sparse_impl(host);
  return {{impl.indices(), seen.indices()}, {impl.values(), seen.values()}};
}

void set_sparse_support(int64_t missing, std::string raises, std::string falls_back, std::vector<std::string> kernels) {
  SparseSupport& support = sparse_support();
  const std::lock_guard<std::mutex> guard(support.lock);
  support.missing = static_cast<Verdict>(missing);
  support.raises = std::move(raises);
  support.falls_back = std::move(falls_back);
  support.kernels = std::set<std::string>(kernels.begin(), kernels.end());
}

void route_composed() {
  static const bool routed = [] {
    route<&call_sparse_on_host>(DispatchKey::SparsePrivateUse1, DispatchKey::SparseCPU);
    route<&call_nested_on_host>(DispatchKey::NestedTensorPrivateUse1, DispatchKey::NestedTensorCPU);
    return true;
  }();
  static_cast<void>(routed);
}

} // namespace ferry

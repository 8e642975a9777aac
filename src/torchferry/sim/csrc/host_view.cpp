#include "host_view.h"

#include "layouts.h"
#include "memory.h"
#include "narrowing.h"

#include <c10/core/TensorImpl.h>

namespace ferry {
namespace {

// Marks that a tensor carries beside its backend; a kernel that does not see them computes nonsense.
constexpr c10::DispatchKeySet kMarks({
    c10::DispatchKey::Conjugate,
    c10::DispatchKey::Negative,
    c10::DispatchKey::ZeroTensor,
});

c10::DispatchKeySet keys_for(const c10::TensorImpl& like, c10::DispatchKey backend) {
  return c10::DispatchKeySet(backend) | (like.key_set() & kMarks);
}

void copy_geometry(c10::TensorImpl& to, const c10::TensorImpl& from) {
  to.set_sizes_and_strides(from.sizes(), from.strides(), from.storage_offset());
  if (from.is_wrapped_number()) {
    to.set_wrapped_number(true);
  }
}

} // namespace

at::Tensor host_view(const at::Tensor& device_tensor) {
  if (is_composed(device_tensor)) {
    return host_view_of_composed(device_tensor);
  }
  const c10::TensorImpl& impl = *device_tensor.unsafeGetTensorImpl();
  TORCH_CHECK_NOT_IMPLEMENTED(
      impl.layout() == c10::kStrided && impl.has_storage(),
      "The simulated device has no ", impl.layout(), " tensors.");
  auto host = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(host_storage(impl.unsafe_storage())), keys_for(impl, c10::DispatchKey::CPU), impl.dtype());
  copy_geometry(*host.unsafeGetTensorImpl(), impl);
  return host;
}

at::Tensor adopt_host_tensor(const at::Tensor& host, c10::DeviceIndex device) {
  if (is_composed(host)) {
    return adopt_composed(host, device);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      host.layout() == c10::kStrided && host.has_storage() && !host.is_quantized(),
      "The simulated device has no ", host.is_quantized() ? "quantized" : c10::str(host.layout()),
      " tensors; this operator gives one.");
  check_dtype(host.scalar_type());
  const c10::TensorImpl& impl = *host.unsafeGetTensorImpl();
  const auto& storage = impl.unsafe_storage();
  auto owned = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage.unsafeGetStorageImpl());
  auto adopted = at::detail::make_tensor<c10::TensorImpl>(
      adopt_host_storage(std::move(owned), device), keys_for(impl, c10::DispatchKey::PrivateUse1), impl.dtype());
  copy_geometry(*adopted.unsafeGetTensorImpl(), impl);
  return adopted;
}

at::Tensor device_view(const at::Tensor& host, const at::Tensor& base) {
  const c10::TensorImpl& impl = *host.unsafeGetTensorImpl();
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW,
      c10::Storage(base.storage()),
      (base.key_set() - kMarks) | (impl.key_set() & kMarks),
      impl.dtype());
  copy_geometry(*view.unsafeGetTensorImpl(), impl);
  return view;
}

void follow_host_view(const at::Tensor& device_tensor, const at::Tensor& host) {
  if (is_composed(device_tensor)) {
    return follow_composed(device_tensor, host);
  }
  c10::TensorImpl& impl = *device_tensor.unsafeGetTensorImpl();
  const c10::TensorImpl& seen = *host.unsafeGetTensorImpl();
  follow_host_storage(impl.unsafe_storage());
  if (impl.sizes() != seen.sizes() || impl.strides() != seen.strides() ||
      impl.storage_offset() != seen.storage_offset()) {
    impl.set_sizes_and_strides(seen.sizes(), seen.strides(), seen.storage_offset());
  }
  device_tensor._set_conj(host.is_conj());
  device_tensor._set_neg(host.is_neg());
}

} // namespace ferry

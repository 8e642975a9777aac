// Device memory in several processes: the host bytes inside a device storage can lie in shared memory, and a device
// storage can be made around bytes that another process shares.
#include "device.h"
#include "host_view.h"
#include "memory.h"

#include <ATen/ops/empty.h>
#include <torch/library.h>

namespace ferry {
namespace {

at::Tensor bytes_over(c10::Storage storage, c10::Device device) {
  const auto size = static_cast<int64_t>(storage.nbytes());
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(device));
  return tensor.set_(std::move(storage), 0, {size}, {1});
}

// The host bytes of a device storage, as a host tensor. Raises in a fork of a process that has used the device.
at::Tensor host_bytes(const at::Tensor& tensor) {
  TORCH_CHECK(is_on_device(tensor), "a tensor on the device is needed, not one on ", tensor.device());
  check_memory_allowed();
  return bytes_over(c10::Storage(host_storage(tensor.storage())), c10::Device(c10::DeviceType::CPU));
}

// After PyTorch has moved the host bytes into shared memory.
void follow_host_bytes(const at::Tensor& tensor) {
  follow_host_storage(tensor.storage());
}

at::Tensor device_bytes(const at::Tensor& host, int64_t device) {
  check_device_index(device);
  const auto index = static_cast<c10::DeviceIndex>(device);
  auto shared = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(host.storage().unsafeGetStorageImpl());
  return bytes_over(
      lend_host_storage(std::move(shared), index), c10::Device(c10::DeviceType::PrivateUse1, index));
}

TORCH_LIBRARY_FRAGMENT(torchferry_sim, m) {
  m.def("host_bytes(Tensor tensor) -> Tensor", &host_bytes);
  m.def("follow_host_bytes(Tensor tensor) -> ()", &follow_host_bytes);
  m.def("device_bytes(Tensor host, int device) -> Tensor", &device_bytes);
}

} // namespace
} // namespace ferry

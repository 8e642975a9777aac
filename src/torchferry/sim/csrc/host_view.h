// The two ways between a device tensor and the host tensor that shares its bytes.
#pragma once

#include <ATen/core/Tensor.h>

namespace ferry {

inline bool is_on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

// A host tensor over the bytes of a device tensor.
at::Tensor host_view(const at::Tensor& device_tensor);

// A device tensor that takes over the bytes of a fresh host tensor.
at::Tensor adopt_host_tensor(const at::Tensor& host, c10::DeviceIndex device);

// A view of a device tensor, with the geometry of a host tensor.
at::Tensor device_view(const at::Tensor& host, const at::Tensor& base);

// After a host kernel changed the geometry or the bytes of a host view: let the device tensor follow.
void follow_host_view(const at::Tensor& device_tensor, const at::Tensor& host);

} // namespace ferry

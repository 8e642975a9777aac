// Tensors that are made of dense ones: sparse (COO) and nested. Their parts travel between device and host.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace ferry {

// Whether a tensor is of one of these kinds.
bool is_composed(const at::Tensor& tensor);

// The host tensor over the bytes of a device tensor's parts.
at::Tensor host_view_of_composed(const at::Tensor& device_tensor);

// The device tensor that takes over the parts of a host tensor.
at::Tensor adopt_composed(const at::Tensor& host, c10::DeviceIndex device);

// After a host kernel gave a host view other parts: let the device tensor have them, too.
void follow_composed(const at::Tensor& device_tensor, const at::Tensor& host);

// The dense tensors inside of a device tensor, each with its part of the host view.
std::vector<std::pair<at::Tensor, at::Tensor>> parts_of(const at::Tensor& device_tensor, const at::Tensor& host);

// What the vendor's adapter does with an operator on sparse tensors. The numbers are those of Verdict; `kernels` are the
// operators that it has. {operator} stands for its name.
void set_sparse_support(int64_t missing, std::string raises, std::string falls_back, std::vector<std::string> kernels);

// Send what the CPU has kernels for on such tensors there.
void route_composed();

} // namespace ferry

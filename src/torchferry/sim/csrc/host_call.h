// The one way of most operators: run the host kernel on the bytes of the device tensors.
#pragma once

#include "half_precision.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <optional>

namespace ferry {

// Boxed kernel for any operator with a host kernel.
void call_on_host(const c10::OperatorHandle& handle, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// The same without asking what the vendor has, with the kernel for one kind of host tensors.
void call_host_kernel(const c10::OperatorHandle& handle, torch::jit::Stack* stack, c10::DispatchKey key);

// While this lives, calls on host tensors go straight to host kernels.
class HostOnly {
 public:
  HostOnly();
  explicit HostOnly(c10::DispatchKeySet left_out);

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
  HalfInSingle half_in_single_;
};

// While this lives, a profiler sees no operators: those that a host kernel calls are no work of the device's own.
class Inside {
 public:
  Inside();

 private:
  std::optional<at::DisableRecordFunctionGuard> unseen_;
};

} // namespace ferry

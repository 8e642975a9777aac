// Own kernels: what makes tensors, looks at them another way, and copies them.
#include "device.h"
#include "host_call.h"
#include "host_view.h"
#include "memory.h"
#include "narrowing.h"
#include "operators.h"
#include "saturation.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

namespace ferry {
namespace {

using at::Tensor;
using c10::IntArrayRef;

const c10::DispatchKeySet kDeviceKey(c10::DispatchKey::PrivateUse1);

c10::Device device_asked(std::optional<c10::Device> device) {
  if (device.has_value() && device->has_index()) {
    check_device_index(device->index());
    return *device;
  }
  return c10::Device(c10::DeviceType::PrivateUse1, current_device());
}

void check_dense(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      layout.value_or(c10::kStrided) == c10::kStrided, "The simulated device has dense tensors only.");
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

Tensor empty(
    IntArrayRef size,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    std::optional<c10::MemoryFormat> memory_format) {
  check_dense(layout, pin_memory);
  const c10::DeviceGuard guard(device_asked(device));
  check_dtype(c10::dtype_or_default(dtype));
  return at::detail::empty_generic(
      size, device_allocator(), kDeviceKey, c10::dtype_or_default(dtype), memory_format);
}

Tensor empty_strided(
    IntArrayRef size,
    IntArrayRef stride,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory) {
  check_dense(layout, pin_memory);
  const c10::DeviceGuard guard(device_asked(device));
  check_dtype(c10::dtype_or_default(dtype));
  return at::detail::empty_strided_generic(
      size, stride, device_allocator(), kDeviceKey, c10::dtype_or_default(dtype));
}

Tensor host_or_same(const Tensor& tensor) {
  return is_on_device(tensor) ? host_view(tensor) : tensor;
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  HostOnly host_only;
  const Tensor host = host_or_same(to);
  host.copy_(host_or_same(from));
  if (is_saturating() && from.scalar_type() != to.scalar_type() && is_on_device(to)) {
    saturate(host);
  }
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  at::native::resize_output(to, from.sizes());
  return copy_from(from, to, false);
}

// A cast on the device; a tensor that is made or moved with its dtype keeps it.
Tensor to_copy(
    const Tensor& self,
    std::optional<at::ScalarType> dtype,
    std::optional<c10::Layout> layout,
    std::optional<c10::Device> device,
    std::optional<bool> pin_memory,
    bool non_blocking,
    std::optional<c10::MemoryFormat> memory_format) {
  const bool stays = !device.has_value() || device->type() == c10::DeviceType::PrivateUse1;
  if (dtype.has_value() && stays && *dtype != self.scalar_type()) {
    dtype = cast_dtype(*dtype);
  }
  return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format);
}

Tensor as_strided(const Tensor& self, IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

Tensor& set_storage(Tensor& self, c10::Storage source, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  at::native::resize_impl_cpu_(
      self.unsafeGetTensorImpl(), size, stride.data() == nullptr ? std::nullopt : std::make_optional(stride), false);
  return self;
}

Tensor& set_whole_storage(Tensor& self, c10::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {elements}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& set_empty(Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  c10::Storage nothing(c10::Storage::use_byte_size_t(), 0, device_allocator(), true);
  return set_storage(self, std::move(nothing), 0, {0}, {});
}

void record_stream(Tensor&, c10::Stream) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_to_copy", &to_copy);
  m.impl("as_strided", &as_strided);
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("set_.source_Storage", &set_whole_storage);
  m.impl("set_.source_Tensor", &set_tensor);
  m.impl("set_", &set_empty);
  m.impl("record_stream", &record_stream);
}

} // namespace
} // namespace ferry

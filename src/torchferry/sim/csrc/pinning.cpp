#include "pinning.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_pin_memory_ops.h>
#include <ATen/ops/is_pinned_ops.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/TensorOptions.h>
#include <torch/library.h>

#include <iterator>
#include <map>
#include <mutex>

namespace ferry {
namespace {

// Host memory that was asked for as pinned. The ranges are remembered: is_pinned() asks about any pointer.
std::mutex pinned_lock;
std::map<const char*, size_t> pinned; // begin -> bytes

struct PinnedBlock {
  c10::DataPtr host;
};

void release_pinned(void* context) {
  auto* block = static_cast<PinnedBlock*>(context);
  {
    std::lock_guard<std::mutex> guard(pinned_lock);
    pinned.erase(static_cast<const char*>(block->host.get()));
  }
  delete block;
}

struct PinnedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) {
    auto* block = new PinnedBlock{c10::GetCPUAllocator()->allocate(bytes)};
    void* data = block->host.get();
    if (data != nullptr) {
      std::lock_guard<std::mutex> guard(pinned_lock);
      pinned.emplace(static_cast<const char*>(data), bytes);
    }
    return c10::DataPtr(data, block, &release_pinned, c10::Device(c10::DeviceType::CPU));
  }

  c10::DeleterFnPtr raw_deleter() const {
    return &release_pinned;
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const {
    c10::GetCPUAllocator()->copy_data(to, from, bytes);
  }
};

PinnedAllocator allocator;

// Older releases of PyTorch pin for CUDA unless another device is named; plugins change that for theirs, as here.
std::optional<c10::DispatchKeySet> keys_of_other(const at::Tensor& tensor, std::optional<c10::Device> device) {
  if (!device.has_value() || device->type() == c10::DeviceType::PrivateUse1) {
    return std::nullopt;
  }
  return c10::DispatchKeySet(c10::computeDispatchKey(std::nullopt, tensor.layout(), device));
}

bool is_tensor_pinned(const at::Tensor& tensor, std::optional<c10::Device> device) {
  if (!tensor.is_cpu()) {
    return false;
  }
  const auto other = keys_of_other(tensor, device);
  return other ? at::_ops::is_pinned::redispatch(*other, tensor, device) : is_pinned(tensor.storage().data());
}

at::Tensor pin(const at::Tensor& tensor, std::optional<c10::Device> device) {
  TORCH_CHECK(tensor.is_cpu(), "cannot pin '", tensor.toString(), "' only dense CPU tensors can be pinned");
  if (const auto other = keys_of_other(tensor, device)) {
    return at::_ops::_pin_memory::redispatch(*other, tensor, device);
  }
  const c10::DispatchKeySet host(c10::DispatchKey::CPU);
  const at::Tensor copy = at::detail::empty_strided_generic(
      tensor.sizes(), tensor.strides(), &allocator, host, tensor.scalar_type());
  return copy.copy_(tensor);
}

struct Silence final : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

struct PinForThisDevice {
  PinForThisDevice() {
    constexpr auto key = c10::DispatchKey::BackendSelect;
    const auto chosen = c10::Dispatcher::singleton().findSchema({"aten::is_pinned", ""});
    if (!chosen.has_value() || !chosen->hasKernelForDispatchKey(key)) {
      return; // a newer release, which asks the accelerator's hooks
    }
    Silence silence; // PyTorch warns of kernels that replace its own
    c10::WarningUtils::WarningHandlerGuard guard(&silence);
    static torch::Library library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library.impl("is_pinned", &is_tensor_pinned);
    library.impl("_pin_memory", &pin);
  }
} pin_for_this_device;

} // namespace

c10::Allocator* pinned_allocator() {
  return &allocator;
}

bool is_pinned(const void* pointer) {
  const auto* position = static_cast<const char*>(pointer);
  std::lock_guard<std::mutex> guard(pinned_lock);
  auto after = pinned.upper_bound(position);
  if (after == pinned.begin()) {
    return false;
  }
  const auto& [begin, bytes] = *std::prev(after);
  return position < begin + bytes;
}

} // namespace ferry

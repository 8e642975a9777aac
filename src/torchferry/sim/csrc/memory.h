// The memory of the simulated devices. A device storage owns a host storage with the same bytes: an operator's
// host view of a device tensor costs a reference count, and a host result becomes a device tensor without a copy.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <cstdint>
#include <string>

namespace ferry {

struct MemoryUse {
  int64_t allocated = 0;
  int64_t peak_allocated = 0;
  int64_t reserved = 0;
  int64_t peak_reserved = 0;
  int64_t allocations = 0;
  int64_t frees = 0;
  int64_t blocks = 0; // allocated now
  int64_t out_of_memory = 0;
  int64_t limit = 0;
};

MemoryUse memory_use(c10::DeviceIndex device);
void set_memory_limit(c10::DeviceIndex device, int64_t limit);
void set_memory_limits(int64_t limit); // of all devices of the machine, visible or not
void reset_peak_memory(c10::DeviceIndex device);
void reset_accumulated_memory(c10::DeviceIndex device);
void empty_cache();
void set_out_of_memory_message(std::string wording);
void set_block_padding(int64_t bytes); // what the allocator adds to each request

// From now on every allocation raises this: a device can't be used in a fork of a process that has used it.
void forbid_memory(std::string reason);

// Raise if they do.
void check_memory_allowed();

// The allocator that PyTorch asks for memory on the current device.
c10::Allocator* device_allocator();

// The host storage inside a device storage.
const c10::intrusive_ptr<c10::StorageImpl>& host_storage(const c10::Storage& device_storage);

// A device storage around a host storage, without a copy. Raises when the device's memory is exhausted.
c10::Storage adopt_host_storage(c10::intrusive_ptr<c10::StorageImpl> host, c10::DeviceIndex device);

// The same around bytes that another process has allocated and is charged for.
c10::Storage lend_host_storage(c10::intrusive_ptr<c10::StorageImpl> host, c10::DeviceIndex device);

// After a host kernel gave the host storage other bytes (resize): let the device storage follow.
void follow_host_storage(const c10::Storage& device_storage);

// Give a device storage another size; its first bytes are kept.
void resize_storage(const c10::Storage& device_storage, size_t bytes);

} // namespace ferry

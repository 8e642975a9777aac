#include "memory.h"

#include "device.h"
#include "visible_devices.h"
#include "wording.h"

#include <ATen/native/Resize.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

// The header is older than the class in it.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 9
#define FERRY_HAS_DEVICE_ALLOCATOR 1
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace ferry {
namespace {

constexpr int64_t kBlock = 512; // what caching allocators round a request up to
constexpr int64_t kSegment = int64_t{2} << 20; // what they take from the device at a time

int64_t round_up(int64_t bytes, int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::atomic<int64_t> padding{0};

// What a request for so many bytes takes.
int64_t block_of(int64_t bytes) {
  return bytes == 0 ? 0 : round_up(bytes + padding, kBlock);
}

// What one device holds. All devices share one lock: it is held for a few additions.
std::mutex ledger_lock;
std::array<MemoryUse, kMaxDevices> ledger;
std::string out_of_memory_wording =
    "{device} out of memory. Tried to allocate {wanted} ({total} total; {allocated} already allocated; {free} free)";

std::atomic<bool> is_forbidden{false};
std::string reason_to_forbid;

void update_reserved(MemoryUse& use) {
  use.peak_allocated = std::max(use.peak_allocated, use.allocated);
  use.reserved = std::max(use.reserved, round_up(use.allocated, kSegment));
  use.peak_reserved = std::max(use.peak_reserved, use.reserved);
}

[[noreturn]] void raise_out_of_memory(c10::DeviceIndex device, int64_t wanted, const MemoryUse& use) {
  const int64_t free = std::max<int64_t>(0, use.limit - use.allocated);
  const auto text = fill_in(
      out_of_memory_wording,
      {{"device", std::to_string(device)},
       {"wanted", readable_bytes(wanted)},
       {"total", readable_bytes(use.limit)},
       {"allocated", readable_bytes(use.allocated)},
       {"reserved", readable_bytes(use.reserved)},
       {"free", readable_bytes(free)}});
  TORCH_CHECK_WITH(OutOfMemoryError, false, text);
}

// Enter `bytes` for a device, or raise and enter nothing.
void charge(c10::DeviceIndex device, int64_t bytes) {
  check_memory_allowed();
  begin_use();
  check_device_index(device);
  MemoryUse refused;
  {
    std::lock_guard<std::mutex> guard(ledger_lock);
    MemoryUse& use = ledger[device];
    if (use.allocated + bytes <= use.limit || bytes == 0) {
      use.allocated += bytes;
      use.allocations += 1;
      use.blocks += 1;
      update_reserved(use);
      return;
    }
    use.out_of_memory += 1;
    use.reserved = round_up(use.allocated, kSegment); // an allocator empties its cache before it gives up
    refused = use;
  }
  raise_out_of_memory(device, bytes, refused);
}

void discharge(c10::DeviceIndex device, int64_t bytes) {
  std::lock_guard<std::mutex> guard(ledger_lock);
  ledger[device].allocated -= bytes;
  ledger[device].frees += 1;
  ledger[device].blocks -= 1;
}

struct DeviceMemory {
  c10::intrusive_ptr<c10::StorageImpl> host;
  c10::DeviceIndex device;
  int64_t charged;
};

c10::Device device_at(c10::DeviceIndex index) {
  return c10::Device(c10::DeviceType::PrivateUse1, index);
}

// Tell a profiler that looks at memory, if there is one, that this came or went.
void tell_profiler(const DeviceMemory& memory, int64_t bytes) {
  if (bytes == 0 || !c10::memoryProfilingEnabled()) {
    return;
  }
  const MemoryUse use = memory_use(memory.device);
  c10::reportMemoryUsageToProfiler(
      memory.host->mutable_data(), bytes, use.allocated, use.reserved, device_at(memory.device));
}

void release(void* context) {
  auto* memory = static_cast<DeviceMemory*>(context);
  discharge(memory->device, memory->charged);
  tell_profiler(*memory, -memory->charged);
  delete memory;
}

c10::DataPtr make_data_ptr(DeviceMemory* memory) {
  return c10::DataPtr(memory->host->mutable_data(), memory, &release, device_at(memory->device));
}

c10::DataPtr new_data_ptr(c10::intrusive_ptr<c10::StorageImpl> host, c10::DeviceIndex device, int64_t charged) {
  auto* memory = new DeviceMemory{std::move(host), device, charged};
  tell_profiler(*memory, charged);
  return make_data_ptr(memory);
}

// A view that PyTorch made of a pointer (from_blob) when it wrote or read a file in the old format: not charged again.
void take_over(c10::StorageImpl& storage) {
  const c10::DeviceIndex device = storage.device().index();
  c10::DataPtr theirs = std::move(storage._mutable_data_ptr_no_checks());
  theirs.unsafe_set_device(c10::Device(c10::DeviceType::CPU));
  auto host = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(theirs), nullptr, /*resizable=*/false);
  charge(device, 0);
  storage.set_data_ptr_noswap(new_data_ptr(std::move(host), device, 0));
}

DeviceMemory* memory_of(c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage._mutable_data_ptr_no_checks();
  if (data.get_deleter() != &release) {
    take_over(storage);
  }
  return static_cast<DeviceMemory*>(data.get_context());
}

c10::DataPtr adopt(c10::intrusive_ptr<c10::StorageImpl> host, c10::DeviceIndex device) {
  const int64_t bytes = host->data() == nullptr ? 0 : block_of(static_cast<int64_t>(host->nbytes()));
  charge(device, bytes);
  return new_data_ptr(std::move(host), device, bytes);
}

c10::intrusive_ptr<c10::StorageImpl> new_host_storage(size_t bytes) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, c10::GetCPUAllocator(), /*resizable=*/true);
}

#ifdef FERRY_HAS_DEVICE_ALLOCATOR
using AllocatorBase = c10::DeviceAllocator;
#else
using AllocatorBase = c10::Allocator;
#endif

struct DeviceAllocator final : AllocatorBase {
  // `const` came and went between releases: both forms are here, the one that is virtual overrides.
  c10::DataPtr allocate(size_t bytes) {
    const c10::DeviceIndex device = current_device();
    const auto counted = block_of(static_cast<int64_t>(bytes));
    charge(device, counted); // before the host is asked: a limit must not cost real memory
    try {
      return new_data_ptr(new_host_storage(bytes), device, counted);
    } catch (...) {
      discharge(device, counted);
      throw;
    }
  }

  c10::DeleterFnPtr raw_deleter() const {
    return &release;
  }

  void copy_data(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }

#ifdef FERRY_HAS_DEVICE_ALLOCATOR
  bool initialized() {
    return true;
  }

  void emptyCache(c10::MempoolId_t = {0, 0}) {
    empty_cache();
  }

  void recordStream(const c10::DataPtr&, c10::Stream) {}

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) {
    using c10::CachingAllocator::StatType;
    const MemoryUse use = memory_use(device);
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto all = static_cast<size_t>(StatType::AGGREGATE);
    for (auto* stat : {&stats.allocated_bytes[all], &stats.active_bytes[all], &stats.requested_bytes[all]}) {
      stat->current = use.allocated;
      stat->peak = use.peak_allocated;
    }
    stats.reserved_bytes[all].current = use.reserved;
    stats.reserved_bytes[all].peak = use.peak_reserved;
    stats.allocation[all].current = use.blocks;
    stats.allocation[all].allocated = use.allocations;
    stats.allocation[all].freed = use.frees;
    stats.num_ooms = use.out_of_memory;
    return stats;
  }

  void resetAccumulatedStats(c10::DeviceIndex device) {
    reset_accumulated_memory(device);
  }

  void resetPeakStats(c10::DeviceIndex device) {
    reset_peak_memory(device);
  }

  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) {
    const MemoryUse use = memory_use(device);
    return {static_cast<size_t>(std::max<int64_t>(0, use.limit - use.reserved)), static_cast<size_t>(use.limit)};
  }
#endif
};

// A fork taken while another thread counts would leave the child a lock that nobody opens.
const int at_fork = pthread_atfork(
    [] { ledger_lock.lock(); }, [] { ledger_lock.unlock(); }, [] { ledger_lock.unlock(); });

DeviceAllocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);

} // namespace

MemoryUse memory_use(c10::DeviceIndex device) {
  check_device_index(device);
  std::lock_guard<std::mutex> guard(ledger_lock);
  return ledger[device];
}

void set_memory_limit(c10::DeviceIndex device, int64_t limit) {
  check_device_index(device);
  TORCH_CHECK(limit >= 0, "a device can't have ", limit, " bytes of memory");
  std::lock_guard<std::mutex> guard(ledger_lock);
  ledger[device].limit = limit;
}

void set_memory_limits(int64_t limit) {
  std::lock_guard<std::mutex> guard(ledger_lock);
  for (auto& use : ledger) {
    use.limit = limit;
  }
}

void reset_peak_memory(c10::DeviceIndex device) {
  check_device_index(device);
  std::lock_guard<std::mutex> guard(ledger_lock);
  ledger[device].peak_allocated = ledger[device].allocated;
  ledger[device].peak_reserved = ledger[device].reserved;
}

void reset_accumulated_memory(c10::DeviceIndex device) {
  check_device_index(device);
  std::lock_guard<std::mutex> guard(ledger_lock);
  ledger[device].allocations = 0;
  ledger[device].frees = 0;
  ledger[device].out_of_memory = 0;
}

void empty_cache() {
  std::lock_guard<std::mutex> guard(ledger_lock);
  for (auto& use : ledger) {
    use.reserved = round_up(use.allocated, kSegment);
  }
}

void set_out_of_memory_message(std::string wording) {
  std::lock_guard<std::mutex> guard(ledger_lock);
  out_of_memory_wording = std::move(wording);
}

void set_block_padding(int64_t bytes) {
  padding = bytes;
}

void forbid_memory(std::string reason) {
  reason_to_forbid = std::move(reason);
  is_forbidden = true;
}

c10::Allocator* device_allocator() {
  return &allocator;
}

const c10::intrusive_ptr<c10::StorageImpl>& host_storage(const c10::Storage& device_storage) {
  return memory_of(*device_storage.unsafeGetStorageImpl())->host;
}

c10::Storage adopt_host_storage(c10::intrusive_ptr<c10::StorageImpl> host, c10::DeviceIndex device) {
  const size_t bytes = host->nbytes();
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      bytes,
      adopt(std::move(host), device),
      &allocator,
      /*resizable=*/true));
}

c10::Storage lend_host_storage(c10::intrusive_ptr<c10::StorageImpl> host, c10::DeviceIndex device) {
  const size_t bytes = host->nbytes();
  charge(device, 0);
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      bytes,
      new_data_ptr(std::move(host), device, 0),
      &allocator,
      /*resizable=*/true));
}

void check_memory_allowed() {
  TORCH_CHECK(!is_forbidden.load(std::memory_order_relaxed), reason_to_forbid);
}

void follow_host_storage(const c10::Storage& device_storage) {
  c10::StorageImpl& storage = *device_storage.unsafeGetStorageImpl();
  DeviceMemory* memory = memory_of(storage);
  const size_t bytes = memory->host->nbytes();
  void* data = memory->host->mutable_data();
  if (storage.nbytes() == bytes && storage._mutable_data_ptr_no_checks().get() == data) {
    return;
  }
  storage._mutable_data_ptr_no_checks().release_context();
  storage.set_data_ptr_noswap(make_data_ptr(memory));
  storage.set_nbytes(bytes);
  const int64_t before = memory->charged;
  memory->charged = block_of(static_cast<int64_t>(bytes));
  discharge(memory->device, before);
  tell_profiler(*memory, -before);
  try {
    charge(memory->device, memory->charged);
    tell_profiler(*memory, memory->charged);
  } catch (...) {
    memory->charged = 0; // the bytes exist on the host, the device never granted them
    throw;
  }
}

void resize_storage(const c10::Storage& device_storage, size_t bytes) {
  DeviceMemory* memory = memory_of(*device_storage.unsafeGetStorageImpl());
  if (!memory->host->resizable()) { // borrowed bytes (a mapped file, a NumPy array): move to our own
    auto own = new_host_storage(memory->host->nbytes());
    std::memcpy(own->mutable_data(), memory->host->data(), memory->host->nbytes());
    memory->host = std::move(own);
  }
  at::native::resize_bytes_cpu(memory->host.get(), bytes);
  follow_host_storage(device_storage);
}

} // namespace ferry

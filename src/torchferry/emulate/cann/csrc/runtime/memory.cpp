#include "memory.h"

#include "devices.h"
#include "stream.h"

#include "../profiling/recording.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace cann {
namespace {

constexpr uint64_t kAlignment = 512;
constexpr uint64_t kPage = 4096;

// Twice the limit: pieces that are freed leave holes, and what is not touched costs nothing.
constexpr uint64_t kRoomForHoles = 2;

uint64_t rounded(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

struct HostMemory {
  std::mutex mutex;
  std::map<const char*, size_t> pinned;
};

HostMemory& host_memory() {
  static auto* all = new HostMemory;
  return *all;
}

void pin(const void* address, size_t bytes) {
  const std::lock_guard lock(host_memory().mutex);
  host_memory().pinned[static_cast<const char*>(address)] = bytes;
}

void unpin(const void* address) {
  const std::lock_guard lock(host_memory().mutex);
  host_memory().pinned.erase(static_cast<const char*>(address));
}

} // namespace

DeviceMemory::DeviceMemory(uint64_t limit) : limit_(limit), size_(rounded(limit * kRoomForHoles, kPage)) {
  file_ = memfd_create("torchferry-device", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0) {
    throw Failure(ACL_ERROR_RT_MEMORY_ALLOCATION, std::string("no memory for a device: ") + strerror(errno));
  }
  void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
  if (base == MAP_FAILED) {
    throw Failure(
        ACL_ERROR_RT_MEMORY_ALLOCATION,
        std::string("no addresses for the memory of a device (") + strerror(errno) + "); choose less with --memory");
  }
  base_ = static_cast<char*>(base);
  free_[0] = size_;
}

uint64_t DeviceMemory::allocate_range(size_t bytes) {
  const uint64_t wanted = rounded(std::max<uint64_t>(bytes, 1), bytes >= kPage ? kPage : kAlignment);
  const std::lock_guard lock(mutex_);
  if (used_ + wanted <= limit_) {
    for (auto [offset, room] : free_) {
      const uint64_t start = rounded(offset, wanted >= kPage ? kPage : kAlignment);
      if (start + wanted > offset + room) {
        continue;
      }
      free_.erase(offset);
      if (start > offset) {
        free_[offset] = start - offset;
      }
      if (start + wanted < offset + room) {
        free_[start + wanted] = offset + room - start - wanted;
      }
      given_[start] = wanted;
      used_ += wanted;
      peak_ = std::max(peak_, used_);
      return start;
    }
  }
  throw Failure(
      ACL_ERROR_RT_MEMORY_ALLOCATION,
      "Failed to allocate memory: " + std::to_string(bytes) + " bytes were asked for, " + std::to_string(limit_ - used_) +
          " of " + std::to_string(limit_) + " are free.");
}

void DeviceMemory::free_range(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = given_.find(offset);
  if (found == given_.end()) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "the address to free was not allocated");
  }
  const uint64_t bytes = found->second;
  given_.erase(found);
  used_ -= bytes;
  give_back(offset, bytes);
}

void DeviceMemory::give_back(uint64_t offset, uint64_t bytes) {
  if (bytes >= kPage) { // the system has the pages again
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }
  auto after = free_.emplace(offset, bytes).first;
  const auto next = std::next(after);
  if (next != free_.end() && offset + bytes == next->first) {
    after->second += next->second;
    free_.erase(next);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += after->second;
      free_.erase(after);
    }
  }
}

void* DeviceMemory::allocate(size_t bytes) {
  return base_ + allocate_range(bytes);
}

void DeviceMemory::free(void* address) {
  free_range(offset_of(address));
}

bool DeviceMemory::contains(const void* address) const {
  const auto* byte = static_cast<const char*>(address);
  return byte >= base_ && byte < base_ + size_;
}

uint64_t DeviceMemory::offset_of(const void* address) const {
  return static_cast<uint64_t>(static_cast<const char*>(address) - base_);
}

uint64_t DeviceMemory::used() {
  const std::lock_guard lock(mutex_);
  return used_;
}

uint64_t DeviceMemory::peak() {
  const std::lock_guard lock(mutex_);
  return peak_;
}

bool is_pinned(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  const std::lock_guard lock(host_memory().mutex);
  auto after = host_memory().pinned.upper_bound(byte);
  if (after == host_memory().pinned.begin()) {
    return false;
  }
  --after;
  return byte < after->first + after->second;
}

namespace {

bool is_pageable(const void* address) {
  return device_of(address) < 0 && !is_pinned(address);
}

void check_copy(const void* target, size_t room, const void* source, size_t bytes) {
  if (bytes > 0 && (target == nullptr || source == nullptr)) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "an address to copy from or to is null");
  }
  if (bytes > room) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "a copy is larger than its target");
  }
}

std::string direction(const void* target, const void* source) {
  return std::string(device_of(source) < 0 ? "host" : "device") + " to " + (device_of(target) < 0 ? "host" : "device");
}

// As a driver does: what is pageable is copied by the caller, not later, when it may be gone.
void copy_later(void* target, const void* source, size_t bytes, Stream& stream) {
  const auto describe = [&] { return Task{"MEMCPY", direction(target, source), std::to_string(bytes)}; };
  if (is_pageable(source) && !stream.graph) {
    std::vector<char> kept(static_cast<const char*>(source), static_cast<const char*>(source) + bytes);
    stream.push(told_to_profiler(stream, describe, [target, kept = std::move(kept)] { memcpy(target, kept.data(), kept.size()); }));
  } else {
    stream.push(told_to_profiler(stream, describe, [=] { memmove(target, source, bytes); }));
  }
  if (is_pageable(target) && !stream.graph) {
    stream.wait();
  }
}

} // namespace
} // namespace cann

using cann::guarded;

extern "C" {

aclError aclrtMalloc(void** address, size_t bytes, aclrtMemMallocPolicy) {
  const cann::Call call("aclrtMalloc");
  const int code = guarded([&] {
    cann::DeviceMemory& memory = cann::memory_of(cann::current_device());
    *address = memory.allocate(bytes);
    cann::record_memory(cann::current_device(), memory.used());
  });
  if (code == ACL_ERROR_RT_MEMORY_ALLOCATION) {
    cann::set_error("EL0004", std::string("Failed to allocate memory. ") + aclGetRecentErrMsg());
  }
  return code;
}

aclError aclrtMallocAlign32(void** address, size_t bytes, aclrtMemMallocPolicy policy) {
  return aclrtMalloc(address, bytes, policy);
}

aclError aclrtFree(void* address) {
  const cann::Call call("aclrtFree");
  return guarded([&] {
    const int device = cann::device_of(address);
    if (device < 0) {
      throw cann::Failure(ACL_ERROR_RT_PARAM_INVALID, "the address to free is not in a device's memory");
    }
    cann::memory_of(device).free(address);
    cann::record_memory(device, cann::memory_of(device).used());
  });
}

aclError aclrtMallocHost(void** address, size_t bytes) {
  return guarded([&] {
    if (posix_memalign(address, 4096, std::max<size_t>(bytes, 1)) != 0) {
      throw cann::Failure(ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory");
    }
    cann::pin(*address, bytes);
  });
}

aclError aclrtMallocHostWithCfg(void** address, uint64_t bytes, aclrtMallocConfig*) {
  return aclrtMallocHost(address, bytes);
}

aclError aclrtFreeHost(void* address) {
  cann::unpin(address);
  free(address);
  return ACL_SUCCESS;
}

aclError aclrtHostRegister(void* address, uint64_t bytes, aclrtHostRegisterType, void** on_device) {
  cann::pin(address, bytes);
  *on_device = address;
  return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void* address, uint64_t bytes, uint32_t) {
  cann::pin(address, bytes);
  return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* address) {
  cann::unpin(address);
  return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void* address, aclrtPtrAttributes* attributes) {
  return guarded([&] {
    *attributes = {};
    const int device = cann::device_of(address);
    attributes->location.id = static_cast<uint32_t>(std::max(device, 0));
    attributes->location.type = device >= 0 ? ACL_MEM_LOCATION_TYPE_DEVICE
        : cann::is_pinned(address)          ? ACL_MEM_LOCATION_TYPE_HOST
                                            : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    attributes->pageSize = 4096;
  });
}

aclError aclrtMemcpy(void* target, size_t room, const void* source, size_t bytes, aclrtMemcpyKind) {
  const cann::Call call("aclrtMemcpy");
  return guarded([&] {
    cann::check_copy(target, room, source, bytes);
    memmove(target, source, bytes);
  });
}

aclError aclrtMemcpyAsync(void* target, size_t room, const void* source, size_t bytes, aclrtMemcpyKind, aclrtStream stream) {
  const cann::Call call("aclrtMemcpyAsync");
  return guarded([&] {
    cann::check_copy(target, room, source, bytes);
    cann::copy_later(target, source, bytes, cann::stream_of(stream));
  });
}

aclError aclrtMemcpyAsyncWithCondition(
    void* target, size_t room, const void* source, size_t bytes, aclrtMemcpyKind kind, aclrtStream stream) {
  return aclrtMemcpyAsync(target, room, source, bytes, kind, stream);
}

aclError aclrtMemset(void* address, size_t room, int32_t value, size_t bytes) {
  return guarded([&] {
    cann::check_copy(address, room, address, bytes);
    memset(address, value, bytes);
  });
}

aclError aclrtMemsetAsync(void* address, size_t room, int32_t value, size_t bytes, aclrtStream stream) {
  const cann::Call call("aclrtMemsetAsync");
  return guarded([&] {
    cann::check_copy(address, room, address, bytes);
    cann::Stream& own = cann::stream_of(stream);
    const auto describe = [&] { return cann::Task{"MEMSET", "", std::to_string(bytes)}; };
    own.push(cann::told_to_profiler(own, describe, [=] { memset(address, value, bytes); }));
  });
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  return guarded([&] {
    auto& memory = cann::memory_of(cann::current_device());
    *total = memory.limit();
    *free = memory.limit() - memory.used();
  });
}

} // extern "C"

// Addresses without memory and memory without addresses: what segments that grow, and other processes, are made of.
#include "devices.h"
#include "memory.h"
#include "stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace cann {
namespace {

struct Physical {
  int file;
  int device; // whose memory it counts against; -1: of another process
  uint64_t offset;
  uint64_t bytes;
};

struct Mapped {
  int device;
  uint64_t bytes;
};

// Addresses outside of the devices' own memory that stand for it.
struct Mappings {
  std::mutex mutex;
  std::map<const char*, Mapped> mapped;
  std::map<const char*, uint64_t> reserved;
  std::map<std::string, std::pair<void*, uint64_t>> of_others; // by key
};

Mappings& mappings() {
  static auto* all = new Mappings;
  return *all;
}

void expect(bool is_so, const char* what) {
  if (!is_so) {
    throw Failure(ACL_ERROR_RT_DRV_INTERNAL_ERROR, std::string(what) + ": " + strerror(errno));
  }
}

int device_among_mapped(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  const std::lock_guard lock(mappings().mutex);
  auto after = mappings().mapped.upper_bound(byte);
  if (after == mappings().mapped.begin()) {
    return -1;
  }
  --after;
  return byte < after->first + after->second.bytes ? after->second.device : -1;
}

void* reserve(size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  expect(address != MAP_FAILED, "no addresses");
  const std::lock_guard lock(mappings().mutex);
  mappings().reserved[static_cast<const char*>(address)] = bytes;
  return address;
}

void release(void* address) {
  const std::lock_guard lock(mappings().mutex);
  const auto found = mappings().reserved.find(static_cast<const char*>(address));
  if (found != mappings().reserved.end()) {
    munmap(address, found->second);
    mappings().reserved.erase(found);
  }
}

void map(void* address, size_t bytes, const Physical& physical) {
  void* placed =
      mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, physical.file, static_cast<off_t>(physical.offset));
  expect(placed == address, "memory can't be mapped");
  const std::lock_guard lock(mappings().mutex);
  mappings().mapped[static_cast<const char*>(address)] = {std::max(physical.device, 0), bytes};
}

void unmap(void* address) {
  const std::lock_guard lock(mappings().mutex);
  const auto found = mappings().mapped.find(static_cast<const char*>(address));
  if (found == mappings().mapped.end()) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped at the address");
  }
  mmap(address, found->second.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  mappings().mapped.erase(found);
}

// A piece of a device's memory, as another process of this user finds it.
struct Key {
  int process = 0;
  int file = 0;
  unsigned long long offset = 0;
  unsigned long long bytes = 0;

  std::string text() const {
    char text[65];
    snprintf(text, sizeof(text), "ferry-%d-%d-%llx-%llx", process, file, offset, bytes);
    return text;
  }

  static Key read(const char* text) {
    Key key;
    if (sscanf(text, "ferry-%d-%d-%llx-%llx", &key.process, &key.file, &key.offset, &key.bytes) != 4) {
      throw Failure(ACL_ERROR_RT_PARAM_INVALID, "this is no key of a device's memory");
    }
    return key;
  }

  int open() const {
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    expect(opened >= 0, "the memory of another process can't be opened");
    return opened;
  }
};

void* open_by_key(const char* text) {
  const Key key = Key::read(text);
  if (key.process == getpid()) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "a process does not open its own memory by a key");
  }
  const int file = key.open();
  void* address = mmap(nullptr, key.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, static_cast<off_t>(key.offset));
  close(file);
  expect(address != MAP_FAILED, "the memory of another process can't be mapped");
  const std::lock_guard lock(mappings().mutex);
  mappings().mapped[static_cast<const char*>(address)] = {current_device(), key.bytes};
  mappings().of_others[text] = {address, key.bytes};
  return address;
}

// The key of memory of this process means nothing here: others have it.
void close_by_key(const std::string& key) {
  const std::lock_guard lock(mappings().mutex);
  const auto found = mappings().of_others.find(key);
  if (found != mappings().of_others.end()) {
    const auto [address, bytes] = found->second;
    munmap(address, bytes);
    mappings().mapped.erase(static_cast<const char*>(address));
    mappings().of_others.erase(found);
  }
}

} // namespace

int device_of(const void* address) {
  for (int device = 0; device < device_count(); ++device) {
    if (is_in_use(device) && memory_of(device).contains(address)) {
      return device;
    }
  }
  return device_among_mapped(address);
}

} // namespace cann

using cann::guarded;
using cann::Physical;

extern "C" {

aclError aclrtReserveMemAddress(void** address, size_t bytes, size_t, void*, uint64_t) {
  return guarded([&] { *address = cann::reserve(bytes); });
}

aclError aclrtReleaseMemAddress(void* address) {
  return guarded([&] { cann::release(address); });
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t bytes, const aclrtPhysicalMemProp* wanted, uint64_t) {
  return guarded([&] {
    const int device = wanted == nullptr ? cann::current_device() : static_cast<int>(wanted->location.id);
    auto& memory = cann::memory_of(device);
    *handle = new Physical{memory.file(), device, memory.allocate_range(bytes), bytes};
  });
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  return guarded([&] {
    auto* physical = static_cast<Physical*>(handle);
    if (physical->device >= 0) {
      cann::memory_of(physical->device).free_range(physical->offset);
    } else {
      close(physical->file);
    }
    delete physical;
  });
}

aclError aclrtMapMem(void* address, size_t bytes, size_t, aclrtDrvMemHandle handle, uint64_t) {
  return guarded([&] { cann::map(address, bytes, *static_cast<Physical*>(handle)); });
}

aclError aclrtUnmapMem(void* address) {
  return guarded([&] { cann::unmap(address); });
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType, uint64_t, uint64_t* shareable) {
  *shareable = reinterpret_cast<uint64_t>(handle);
  return ACL_SUCCESS;
}

aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t, aclrtDrvMemHandle*) {
  cann::set_error("aclrtMemImportFromShareableHandle: memory handles of other processes can't be imported on the emulated device");
  return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
}

aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t*, size_t) {
  return ACL_SUCCESS; // whoever has this user's rights may open it
}

aclError aclrtIpcMemGetExportKey(void* address, size_t bytes, char* key, size_t room, uint64_t) {
  return guarded([&] {
    const int device = cann::device_of(address);
    if (device < 0 || !cann::memory_of(device).contains(address)) {
      throw cann::Failure(ACL_ERROR_RT_PARAM_INVALID, "only memory of aclrtMalloc can be shared with other processes");
    }
    auto& memory = cann::memory_of(device);
    const std::string text = cann::Key{getpid(), memory.file(), memory.offset_of(address), bytes}.text();
    if (text.size() >= room) {
      throw cann::Failure(ACL_ERROR_RT_PARAM_INVALID, "no room for the key");
    }
    strcpy(key, text.c_str());
  });
}

aclError aclrtIpcMemSetImportPid(const char*, int32_t*, size_t) {
  return ACL_SUCCESS;
}

aclError aclrtIpcMemImportByKey(void** address, const char* key, uint64_t) {
  return guarded([&] { *address = cann::open_by_key(key); });
}

aclError aclrtIpcMemClose(const char* key) {
  return guarded([&] { cann::close_by_key(key); });
}

} // extern "C"

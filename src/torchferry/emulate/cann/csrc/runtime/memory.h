// The memory of the devices: one file in memory for each, of which ranges are given out, counted against a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>

namespace cann {

class DeviceMemory {
 public:
  explicit DeviceMemory(uint64_t limit);

  // Throws Failure when the limit is reached.
  void* allocate(size_t bytes);
  void free(void* address);

  // Physical memory without an address, to be mapped where the caller wants it.
  uint64_t allocate_range(size_t bytes); // its place in the file
  void free_range(uint64_t offset);

  bool contains(const void* address) const;
  // Where an address of this memory lies in the file.
  uint64_t offset_of(const void* address) const;
  int file() const {
    return file_;
  }
  uint64_t limit() const {
    return limit_;
  }
  uint64_t used();
  uint64_t peak();

 private:
  void give_back(uint64_t offset, uint64_t bytes);

  const uint64_t limit_;
  const uint64_t size_;
  int file_;
  char* base_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_; // offset -> bytes; neighbours are one
  std::unordered_map<uint64_t, uint64_t> given_; // offset -> bytes
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
};

DeviceMemory& memory_of(int device);

// The device whose memory an address is in; -1: it is the host's.
int device_of(const void* address);

// Whether an address was made by aclrtMallocHost or registered: streams may use it later.
bool is_pinned(const void* address);

} // namespace cann

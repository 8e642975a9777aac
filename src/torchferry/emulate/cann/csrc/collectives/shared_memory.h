// Memory that several processes see, and waiting for a word in it to change.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace collectives {

// A file without a name, mapped: it is gone when the last process that has it is.
class SharedMemory {
 public:
  // Throws Refusal (EI0007) if there is no room.
  static std::shared_ptr<SharedMemory> create(const std::string& name, size_t bytes);
  // Takes the file over. What this process has under the name already is used again.
  static std::shared_ptr<SharedMemory> attach(const std::string& name, int file);
  ~SharedMemory();

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void* data() const {
    return data_;
  }
  size_t bytes() const {
    return bytes_;
  }
  int file() const {
    return file_;
  }

  // A sign of life that the kernel takes down with the process, before anybody has waited for it: a lock of one byte of the file.
  void sign(uint32_t place) const;
  // Of another process: a process does not see its own.
  bool is_signed(uint32_t place) const;

 private:
  SharedMemory(int file, size_t bytes);

  const int file_;
  const size_t bytes_;
  std::vector<int> further_files_; // of the same: closing one would end this process's signs of life
  void* data_ = nullptr;
};

// Sleeps until somebody calls wake on the word, unless it differs from `seen` already; at most some milliseconds.
void sleep_on(std::atomic<uint32_t>& word, uint32_t seen, int milliseconds);
void wake(std::atomic<uint32_t>& word);

} // namespace collectives

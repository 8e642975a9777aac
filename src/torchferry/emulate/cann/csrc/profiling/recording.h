// What is recorded while a profiler is on: the tasks of streams, calls on the host, and how much memory is in use.
#pragma once

#include "../runtime/stream.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace cann {

extern std::atomic<bool> recording;

inline bool is_recording() {
  return recording.load(std::memory_order_relaxed);
}

struct Task {
  const char* kind; // KERNEL, MEMCPY ...
  std::string name;
  std::string details; // as the kind has it
};

// The same work, which also tells when it is done, and from where it was put on the stream.
Work record_task(const Stream& stream, Task task, Work work);

// `describe` answers the task; it is asked only while a profiler is on.
template <typename Describe>
Work told_to_profiler(const Stream& stream, const Describe& describe, Work work) {
  return is_recording() ? record_task(stream, describe(), std::move(work)) : std::move(work);
}

// A call of the interface, from here to the end of the block.
class Call {
 public:
  explicit Call(const char* name);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const char* name_; // nullptr: no profiler is on
  uint64_t began_ = 0;
};

// The thread's task waits for others, from here to the end of the block: of a collective, the other ranks.
class Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  uint64_t began_;
};

// How much of a device's memory is in use now.
void record_memory(int device, uint64_t bytes);

} // namespace cann

// One profile: what was recorded from its start to its stop, and the folder that it is written to.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace cann {

struct TaskRecord {
  const char* kind;
  std::string name;
  std::string details;
  uint32_t connection; // of the call on the host and the task
  int device;
  uint32_t stream;
  int thread; // that has put it on the stream
  uint64_t called = 0, call_ended = 0;
  uint64_t started = 0, ended = 0;
  uint64_t waited = 0; // of that time, for others
};

struct CallRecord {
  const char* name;
  int thread;
  uint64_t started, ended;
};

struct MemoryRecord {
  int device;
  uint64_t time;
  uint64_t bytes;
};

// What the profiler was asked for.
struct ProfileConfig {
  std::vector<int> devices;
  uint64_t data_types = 0;
};

// The same instant by both clocks, in nanoseconds.
struct Instant {
  uint64_t real;
  uint64_t monotonic;
};

// The clock that the plugin takes its own times from.
uint64_t now();
Instant instant();

class Session {
 public:
  explicit Session(ProfileConfig config);

  bool has_device(int device) const;
  uint32_t next_connection();
  void add(TaskRecord task);
  void add(const CallRecord& call);
  void add(const MemoryRecord& memory);

  // Into a new folder in this one. Throws std::filesystem::filesystem_error, std::ios_base::failure.
  void write(const std::string& folder);

 private:
  const ProfileConfig config_;
  const Instant began_;
  std::mutex mutex_;
  uint32_t connections_ = 0;
  std::vector<TaskRecord> tasks_;
  std::vector<CallRecord> calls_;
  std::vector<MemoryRecord> memory_;
};

// From now on things are recorded there; nullptr: nothing is any more.
void record_into(std::shared_ptr<Session> session);
std::shared_ptr<Session> current_session();

// The operating system's number of the calling thread.
int thread_number();

} // namespace cann

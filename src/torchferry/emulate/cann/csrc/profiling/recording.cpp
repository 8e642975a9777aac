#include "recording.h"

#include "session.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cann {

std::atomic<bool> recording = false;

namespace {

thread_local uint64_t waited = 0; // of the task that the thread works on

struct Current {
  std::mutex mutex;
  std::shared_ptr<Session> session;
};

Current& current() {
  static auto* one = new Current; // streams use it until the very end
  return *one;
}

// Tells of the task when its work is over, also if that has thrown.
class Working {
 public:
  Working(Session& session, TaskRecord& task) : session_(session), task_(task) {
    waited = 0;
    task_.started = now();
  }
  ~Working() {
    task_.ended = now();
    task_.waited = waited;
    session_.add(task_);
  }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;

 private:
  Session& session_;
  TaskRecord& task_;
};

} // namespace

void record_into(std::shared_ptr<Session> session) {
  // A process that was forked has none of the streams, and a lock may be held in it for ever.
  static const int once = pthread_atfork(nullptr, nullptr, [] { recording = false; });
  static_cast<void>(once);
  const std::lock_guard lock(current().mutex);
  recording = session != nullptr;
  current().session = std::move(session);
}

std::shared_ptr<Session> current_session() {
  const std::lock_guard lock(current().mutex);
  return current().session;
}

int thread_number() {
  thread_local const int number = static_cast<int>(syscall(SYS_gettid));
  return number;
}

Work record_task(const Stream& stream, Task task, Work work) {
  const auto session = current_session();
  if (session == nullptr || !session->has_device(stream.device())) {
    return work;
  }
  TaskRecord record{task.kind, std::move(task.name), std::move(task.details), session->next_connection(), stream.device(), stream.id(), thread_number()};
  record.called = now();
  record.call_ended = now();
  return [session, record = std::move(record), work = std::move(work)]() mutable {
    const Working working(*session, record);
    work();
  };
}

Call::Call(const char* name) : name_(is_recording() ? name : nullptr) {
  if (name_ != nullptr) {
    began_ = now();
  }
}

Call::~Call() {
  if (name_ == nullptr) {
    return;
  }
  if (const auto session = current_session()) {
    session->add(CallRecord{name_, thread_number(), began_, now()});
  }
}

Waiting::Waiting() : began_(is_recording() ? now() : 0) {}

Waiting::~Waiting() {
  if (began_ != 0) {
    waited += now() - began_;
  }
}

void record_memory(int device, uint64_t bytes) {
  if (!is_recording()) {
    return;
  }
  const auto session = current_session();
  if (session != nullptr && session->has_device(device)) {
    session->add(MemoryRecord{device, now(), bytes});
  }
}

} // namespace cann

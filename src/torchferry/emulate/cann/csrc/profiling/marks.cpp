// Marks and ranges that a program sets itself: on the host, and in a stream if it names one.
#include "recording.h"
#include "session.h"

#include <atomic>
#include <unordered_map>

namespace cann {
namespace {

struct Range {
  std::shared_ptr<Session> session;
  TaskRecord record;
  Stream* stream; // nullptr: on the host only
  std::shared_ptr<uint64_t> reached; // when the stream has come to its beginning
};

struct Ranges {
  std::mutex mutex;
  uint64_t made = 0;
  std::unordered_map<uint64_t, Range> open;
};

Ranges& ranges() {
  static auto* all = new Ranges;
  return *all;
}

uint64_t begin_range(const char* message, aclrtStream handle) {
  const std::lock_guard lock(ranges().mutex);
  const uint64_t number = ++ranges().made;
  const auto session = current_session();
  if (session == nullptr || message == nullptr) {
    return number;
  }
  Stream& stream = stream_of(handle);
  Range range{session, {"HOST_RANGE", message, "", session->next_connection(), stream.device(), stream.id(), thread_number()}, nullptr, nullptr};
  range.record.called = now();
  if (handle != nullptr) {
    range.record.kind = "RANGE";
    range.stream = &stream;
    range.reached = std::make_shared<uint64_t>(0);
    stream.push([reached = range.reached] { *reached = now(); });
  }
  ranges().open.emplace(number, std::move(range));
  return number;
}

void end_range(uint64_t number) {
  const std::lock_guard lock(ranges().mutex);
  auto found = ranges().open.extract(number);
  if (found.empty()) {
    return;
  }
  Range& range = found.mapped();
  range.record.call_ended = now();
  if (range.stream == nullptr) {
    range.record.started = range.record.ended = range.record.called;
    range.session->add(std::move(range.record));
    return;
  }
  range.stream->push([session = range.session, record = std::move(range.record), reached = range.reached]() mutable {
    record.started = *reached;
    record.ended = now();
    session->add(std::move(record));
  });
}

} // namespace
} // namespace cann

extern "C" {

uint64_t mstxRangeStartA(const char* message, aclrtStream stream) {
  return cann::begin_range(message, stream);
}

void mstxRangeEnd(uint64_t range) {
  cann::end_range(range);
}

void mstxMarkA(const char* message, aclrtStream stream) {
  cann::end_range(cann::begin_range(message, stream));
}

// What domains are shown is the plugin's choice: it does not call for those that it leaves out.
void* mstxDomainCreateA(const char*) {
  static char domain;
  return &domain;
}

void mstxDomainDestroy(void*) {}

void mstxDomainMarkA(void*, const char* message, aclrtStream stream) {
  mstxMarkA(message, stream);
}

uint64_t mstxDomainRangeStartA(void*, const char* message, aclrtStream stream) {
  return mstxRangeStartA(message, stream);
}

void mstxDomainRangeEnd(void*, uint64_t range) {
  mstxRangeEnd(range);
}

} // extern "C"

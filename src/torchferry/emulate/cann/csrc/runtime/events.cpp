// Events: marks in streams, waited for by streams and threads.
#include "stream.h"

#include "../profiling/recording.h"

#include <chrono>

namespace cann {
namespace {

using Clock = std::chrono::steady_clock;

struct Marks {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t recorded = 0; // how often it was asked for
  uint64_t reached = 0; // the last one that its stream has come to
  Clock::time_point time;
  std::shared_ptr<const Failure> failure; // of the stream, when it came there: those who wait have it as well
  std::shared_ptr<Graph> graph; // that the last record was captured into
};

// Streams go on with the marks when the event itself is destroyed.
struct Event {
  std::shared_ptr<Marks> marks = std::make_shared<Marks>();
};

Marks& marks_of(aclrtEvent event) {
  if (event == nullptr) {
    throw Failure(ACL_ERROR_RT_PARAM_INVALID, "the event is null");
  }
  return *static_cast<Event*>(event)->marks;
}

void reach(Marks& marks, uint64_t mark, const Failure* failure) {
  const std::lock_guard lock(marks.mutex);
  marks.failure = failure == nullptr ? nullptr : std::make_shared<const Failure>(*failure);
  marks.reached = std::max(marks.reached, mark);
  marks.time = Clock::now();
  marks.changed.notify_all();
}

void wait_for(Marks& marks, uint64_t mark) {
  std::unique_lock lock(marks.mutex);
  marks.changed.wait(lock, [&] { return marks.reached >= mark; });
  if (marks.failure != nullptr) {
    throw Failure(*marks.failure);
  }
}

uint64_t recorded(Marks& marks) {
  const std::lock_guard lock(marks.mutex);
  return marks.recorded;
}

bool is_complete(Marks& marks) {
  const std::lock_guard lock(marks.mutex);
  return marks.reached >= marks.recorded;
}

void record(aclrtEvent event, Stream& stream) {
  const auto marks = static_cast<Event*>(event)->marks;
  uint64_t mark = 0;
  {
    const std::lock_guard lock(marks->mutex);
    marks->graph = stream.graph;
    if (stream.graph) {
      return; // inside of a graph the order of its work is enough
    }
    mark = ++marks->recorded;
  }
  const Work told = told_to_profiler(stream, [] { return Task{"EVENT_RECORD", "", ""}; }, [] {});
  stream.push_mark([marks, mark, told](const Failure* failure) {
    if (failure == nullptr) {
      told();
    }
    reach(*marks, mark, failure);
  });
}

// A stream that waits for a mark in a graph is captured with it.
void make_wait(Stream& stream, aclrtEvent event) {
  const auto marks = static_cast<Event*>(event)->marks;
  std::shared_ptr<Graph> graph;
  {
    const std::lock_guard lock(marks->mutex);
    graph = marks->graph;
  }
  if (graph && !stream.graph) {
    stream.graph = graph;
    graph->streams.push_back(&stream);
  }
  if (!stream.graph) {
    const auto describe = [] { return Task{"EVENT_WAIT", "", ""}; };
    stream.push(told_to_profiler(stream, describe, [marks, mark = recorded(*marks)] { wait_for(*marks, mark); }));
  }
}

uint64_t nanoseconds(Marks& marks) {
  const std::lock_guard lock(marks.mutex);
  if (marks.recorded == 0 || marks.reached < marks.recorded) {
    throw Failure(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event has not been recorded, or is not complete");
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(marks.time.time_since_epoch()).count();
}

} // namespace
} // namespace cann

using cann::guarded;
using cann::marks_of;
using cann::stream_of;

extern "C" {

aclError aclrtCreateEvent(aclrtEvent* event) {
  *event = new cann::Event;
  return ACL_SUCCESS;
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t) {
  return aclrtCreateEvent(event);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t) {
  return aclrtCreateEvent(event);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  delete static_cast<cann::Event*>(event);
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  const cann::Call call("aclrtRecordEvent");
  return guarded([&] { cann::record(event, stream_of(stream)); });
}

aclError aclrtResetEvent(aclrtEvent, aclrtStream) {
  return ACL_SUCCESS; // a mark is of one record alone: there is nothing to reset
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  const cann::Call call("aclrtStreamWaitEvent");
  return guarded([&] { cann::make_wait(stream_of(stream), event); });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  const cann::Call call("aclrtSynchronizeEvent");
  return guarded([&] { cann::wait_for(marks_of(event), cann::recorded(marks_of(event))); });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t) {
  return aclrtSynchronizeEvent(event);
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return guarded([&] {
    *status = cann::is_complete(marks_of(event)) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  return guarded([&] {
    *status = cann::is_complete(marks_of(event)) ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
  });
}

aclError aclrtEventElapsedTime(float* milliseconds, aclrtEvent start, aclrtEvent end) {
  return guarded([&] {
    const auto from = cann::nanoseconds(marks_of(start));
    const auto to = cann::nanoseconds(marks_of(end));
    *milliseconds = static_cast<float>(static_cast<double>(static_cast<int64_t>(to - from)) * 1e-6);
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* microseconds) {
  return guarded([&] { *microseconds = cann::nanoseconds(marks_of(event)) / 1000; });
}

} // extern "C"

// Functions of the host that a stream calls when it comes to them, by itself or through a thread that reports.
#include "stream.h"

#include <chrono>
#include <map>

namespace cann {
namespace {

// The functions that a reporting thread has still to call.
struct Reports {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> waiting;
};

struct Subscriptions {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Reports>> of_threads;
  std::map<Stream*, std::shared_ptr<Reports>> of_streams;
};

Subscriptions& subscriptions() {
  static auto* all = new Subscriptions;
  return *all;
}

std::shared_ptr<Reports> reports_of(uint64_t thread) {
  auto& found = subscriptions().of_threads[thread];
  if (!found) {
    found = std::make_shared<Reports>();
  }
  return found;
}

void subscribe(uint64_t thread, Stream& stream) {
  const std::lock_guard lock(subscriptions().mutex);
  subscriptions().of_streams[&stream] = reports_of(thread);
}

void unsubscribe(Stream& stream) {
  const std::lock_guard lock(subscriptions().mutex);
  subscriptions().of_streams.erase(&stream);
}

std::shared_ptr<Reports> subscribed(Stream& stream) {
  const std::lock_guard lock(subscriptions().mutex);
  const auto found = subscriptions().of_streams.find(&stream);
  if (found == subscriptions().of_streams.end()) {
    throw Failure(ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread reports for this stream");
  }
  return found->second;
}

// Calls a function on the reporting thread; the stream waits for it if it is to.
void call_through(Stream& stream, aclrtCallback function, void* data, bool blocks) {
  stream.push([reports = subscribed(stream), function, data, blocks] {
    const auto is_called = std::make_shared<bool>(false);
    std::unique_lock lock(reports->mutex);
    reports->waiting.push_back([=] {
      function(data);
      const std::lock_guard again(reports->mutex);
      *is_called = true;
      reports->changed.notify_all();
    });
    reports->changed.notify_all();
    if (blocks) {
      reports->changed.wait(lock, [&] { return *is_called; });
    }
  });
}

bool report(uint64_t thread, int milliseconds) {
  std::shared_ptr<Reports> reports;
  {
    const std::lock_guard lock(subscriptions().mutex);
    reports = reports_of(thread);
  }
  std::unique_lock lock(reports->mutex);
  const auto has_any = [&] { return !reports->waiting.empty(); };
  if (milliseconds < 0) {
    reports->changed.wait(lock, has_any);
  } else if (!reports->changed.wait_for(lock, std::chrono::milliseconds(milliseconds), has_any)) {
    return false;
  }
  const Work work = std::move(reports->waiting.front());
  reports->waiting.pop_front();
  lock.unlock();
  work();
  return true;
}

} // namespace
} // namespace cann

using cann::guarded;
using cann::stream_of;

extern "C" {

aclError aclrtSubscribeReport(uint64_t thread, aclrtStream stream) {
  return guarded([&] { cann::subscribe(thread, stream_of(stream)); });
}

aclError aclrtUnSubscribeReport(uint64_t, aclrtStream stream) {
  return guarded([&] { cann::unsubscribe(stream_of(stream)); });
}

aclError aclrtLaunchCallback(aclrtCallback function, void* data, aclrtCallbackBlockType blocking, aclrtStream stream) {
  return guarded([&] { cann::call_through(stream_of(stream), function, data, blocking == ACL_CALLBACK_BLOCK); });
}

aclError aclrtProcessReport(int32_t milliseconds) {
  return cann::report(static_cast<uint64_t>(pthread_self()), milliseconds) ? ACL_SUCCESS : ACL_ERROR_WAIT_CALLBACK_TIMEOUT;
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc function, void* data) {
  return guarded([&] { stream_of(stream).push([=] { function(data); }); });
}

} // extern "C"

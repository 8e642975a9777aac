#include "stream.h"

#include "../profiling/recording.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <unordered_map>

namespace cann {
namespace {

// What a caller waits for after it has been idle: a thread that sleeps takes some ten microseconds to wake.
constexpr int kLooksBeforeSleep = 200;

struct Streams {
  std::mutex mutex;
  std::vector<Stream*> open;
  std::unordered_map<int, Stream*> defaults;
  uint32_t made = 0;
};

Streams& streams() {
  static auto* all = new Streams; // threads use it until the very end
  return *all;
}

Stream* make_stream(int device) {
  auto& all = streams();
  const std::lock_guard lock(all.mutex);
  all.open.push_back(new Stream(device, all.made++));
  return all.open.back();
}

Stream& default_stream(int device) {
  auto& all = streams();
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.defaults.find(device);
    if (found != all.defaults.end()) {
      return *found->second;
    }
  }
  Stream* made = make_stream(device);
  const std::lock_guard lock(all.mutex);
  return *all.defaults.emplace(device, made).first->second;
}

std::vector<Stream*> open_streams(int device) {
  auto& all = streams();
  const std::lock_guard lock(all.mutex);
  std::vector<Stream*> found;
  std::copy_if(all.open.begin(), all.open.end(), std::back_inserter(found), [&](const Stream* stream) {
    return device < 0 || stream->device() == device;
  });
  return found;
}

} // namespace

Stream::Stream(int device, uint32_t id) : device_(device), id_(id) {}

void Stream::push(Work work) {
  if (graph) {
    graph->works.push_back(std::move(work));
    return;
  }
  push_mark([work = std::move(work)](const Failure* failure) {
    if (failure == nullptr) { // what comes after one would compute with garbage
      work();
    }
  });
}

void Stream::push_mark(Mark mark) {
  const std::lock_guard lock(mutex_);
  if (!started_) {
    start();
  }
  queue_.push_back(std::move(mark));
  ++pushed_;
  has_work_.notify_one();
}

// Detached, and the stream is never deleted: nothing has to be in order when the process ends.
void Stream::start() {
  started_ = true;
  std::thread([this] { run(); }).detach();
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    for (int looks = 0; queue_.empty() && !closed_ && looks < kLooksBeforeSleep; ++looks) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    has_work_.wait(lock, [this] { return !queue_.empty() || closed_; });
    if (queue_.empty()) {
      return;
    }
    Mark work = std::move(queue_.front());
    queue_.pop_front();
    const std::unique_ptr<Failure> before = failure_ ? std::make_unique<Failure>(*failure_) : nullptr;
    lock.unlock();
    std::unique_ptr<Failure> failure;
    try {
      work(before.get());
    } catch (const Failure& thrown) {
      failure = std::make_unique<Failure>(thrown);
    } catch (const std::exception& thrown) {
      failure = std::make_unique<Failure>(ACL_ERROR_RT_AICORE_EXCEPTION, thrown.what());
    }
    work = nullptr; // frees what it holds before somebody is told that it is done
    lock.lock();
    if (failure && !failure_) {
      failure_ = std::move(failure);
    }
    ++done_;
    is_done_.notify_all();
  }
}

bool Stream::wait(int milliseconds) {
  if (graph) {
    throw Failure(ACL_ERROR_RT_STREAM_CAPTURED, "the stream is being captured: nothing can wait for it");
  }
  std::unique_lock lock(mutex_);
  const uint64_t last = pushed_;
  const auto is_over = [&] { return done_ >= last; };
  if (milliseconds < 0) {
    is_done_.wait(lock, is_over);
  } else if (!is_done_.wait_for(lock, std::chrono::milliseconds(milliseconds), is_over)) {
    return false;
  }
  if (failure_) {
    const Failure failure = *failure_;
    failure_.reset();
    throw failure;
  }
  return true;
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  return done_ == pushed_;
}

void Stream::abort() {
  const Failure aborted(ACL_ERROR_RT_STREAM_ABORT, "the stream was aborted");
  std::unique_lock lock(mutex_);
  std::deque<Mark> dropped;
  dropped.swap(queue_);
  lock.unlock();
  for (const Mark& mark : dropped) {
    mark(&aborted); // whoever waits for it goes on
  }
  lock.lock();
  done_ += dropped.size();
  is_done_.notify_all();
}

void Stream::close() {
  {
    auto& all = streams();
    const std::lock_guard lock(all.mutex);
    all.open.erase(std::remove(all.open.begin(), all.open.end(), this), all.open.end());
  }
  const std::lock_guard lock(mutex_);
  closed_ = true;
  has_work_.notify_all();
}

Stream& stream_of(aclrtStream handle) {
  return handle == nullptr ? default_stream(current_device()) : *static_cast<Stream*>(handle);
}

void enqueue(aclrtStream stream, Work work) {
  stream_of(stream).push(std::move(work));
}

bool wait_for_device(int device, int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (Stream* stream : open_streams(device)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (!stream->wait(milliseconds < 0 ? -1 : std::max<int>(0, static_cast<int>(left)))) {
      return false;
    }
  }
  return true;
}

void finish_all_streams() {
  constexpr int kLongest = 2000; // a collective that waits for a process that is gone does not keep this one
  for (Stream* stream : open_streams(-1)) {
    try {
      if (!stream->wait(kLongest)) {
        stream->abort();
      }
    } catch (const Failure&) {
      // nobody is left to be told
    }
  }
}

} // namespace cann

using cann::guarded;
using cann::stream_of;

namespace {

void expect(bool in_time, int code, const char* what) {
  if (!in_time) {
    throw cann::Failure(code, what);
  }
}

} // namespace

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) {
  return guarded([&] { *stream = cann::make_stream(cann::current_device()); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
  return aclrtCreateStream(stream);
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return guarded([&] { stream_of(stream).close(); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return guarded([&] {
    stream_of(stream).abort();
    stream_of(stream).close();
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  return guarded([&] { stream_of(stream).abort(); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  const cann::Call call("aclrtSynchronizeStream");
  return guarded([&] { stream_of(stream).wait(); });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t milliseconds) {
  const cann::Call call("aclrtSynchronizeStreamWithTimeout");
  return guarded([&] {
    expect(stream_of(stream).wait(milliseconds), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream synchronize timeout");
  });
}

aclError aclrtSynchronizeDevice() {
  const cann::Call call("aclrtSynchronizeDevice");
  return guarded([] { cann::wait_for_device(cann::current_device(), -1); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t milliseconds) {
  const cann::Call call("aclrtSynchronizeDeviceWithTimeout");
  return guarded([&] {
    expect(
        cann::wait_for_device(cann::current_device(), milliseconds),
        ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        "device synchronize timeout");
  });
}

aclError aclrtDeviceTaskAbort(int32_t device, uint32_t) {
  return guarded([&] {
    for (cann::Stream* stream : cann::open_streams(device)) {
      stream->abort();
    }
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guarded([&] {
    *status = stream_of(stream).is_idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* id) {
  return guarded([&] { *id = static_cast<int32_t>(stream_of(stream).id()); });
}

} // extern "C"

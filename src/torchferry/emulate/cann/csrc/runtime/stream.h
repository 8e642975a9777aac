// Streams: queues of work, each worked off in order by a thread of its own.
#pragma once

#include "error.h"

#include <acl/acl.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace cann {

using Work = std::function<void()>;
using Mark = std::function<void(const Failure*)>; // the failure of the stream; nullptr: none
struct Graph;

class Stream {
 public:
  explicit Stream(int device, uint32_t id);

  // Behind all that was pushed before; while the stream is captured, into the graph instead.
  void push(Work work);
  // The same for a mark that others wait for: it is reached behind a failure, too, and told of it. Otherwise they would wait for ever.
  void push_mark(Mark mark);
  // Until what was pushed up to now is done, or the time (milliseconds; negative: none) is over: false. Throws what the work has thrown.
  bool wait(int milliseconds = -1);
  bool is_idle();
  // Drops what has not begun.
  void abort();
  void close();

  int device() const {
    return device_;
  }
  uint32_t id() const {
    return id_;
  }

  std::shared_ptr<Graph> graph; // being captured

 private:
  void run();
  void start();

  const int device_;
  const uint32_t id_;
  std::mutex mutex_;
  std::condition_variable has_work_;
  std::condition_variable is_done_;
  std::deque<Mark> queue_;
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;
  bool started_ = false;
  bool closed_ = false;
  std::unique_ptr<Failure> failure_; // of the first work that has failed, until somebody is told
};

// What was captured: the work in the order in which it was pushed.
struct Graph {
  std::vector<Work> works;
  std::vector<Stream*> streams;
  uint32_t id = 0;
};

// The stream behind a handle; nullptr is the current device's default stream.
Stream& stream_of(aclrtStream handle);

// Runs work on the stream's own thread, in order; returns at once.
void enqueue(aclrtStream stream, Work work);

// All streams of a device, until what was pushed up to now is done.
bool wait_for_device(int device, int milliseconds);

// Before the process ends: no thread of ours may compute while libraries are taken down.
void finish_all_streams();

int current_device();

} // namespace cann

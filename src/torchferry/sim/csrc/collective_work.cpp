#include "collective_work.h"

#include "host_call.h"

#include <ATen/core/ivalue.h>
#include <c10/core/DeviceGuard.h>

#include <atomic>
#include <thread>

namespace ferry {
namespace {

using c10::ivalue::Future;

class DeviceWork : public c10d::Work {
 public:
  DeviceWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs)
      : c10d::Work(rank, type),
        outputs_(std::move(outputs)),
        // Without devices: the work is over on the host when the future is, there is no stream to wait for.
        future_(c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()))) {}

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) {
    try {
      const bool done = Work::wait(timeout);
      future_->wait();
      return done;
    } catch (...) {
      if (Work::isCompleted()) { // it has failed; else the time was over, and the future may never be done
        future_->wait();
      }
      throw;
    }
  }

  bool isCompleted() {
    return future_->completed();
  }

  std::vector<at::Tensor> result() {
    return outputs_;
  }

  c10::intrusive_ptr<Future> getFuture() {
    return future_;
  }

  void blockCurrentStream() {
    wait(kNoTimeout);
  }

 protected:
  // The future comes last: whoever sees it done finds the work done as well.
  void complete(const std::exception_ptr& error) {
    finish(error);
    if (error) {
      future_->setError(error);
      return;
    }
    // Callbacks run here, in a thread that has not chosen a device.
    c10::OptionalDeviceGuard guard;
    if (!outputs_.empty()) {
      guard.reset_device(outputs_.front().device());
    }
    future_->markCompleted(c10::IValue(outputs_));
  }

 private:
  std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<Future> future_;
};

class CollectiveWork final : public DeviceWork {
 public:
  CollectiveWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, HostWork host)
      : DeviceWork(rank, type, std::move(outputs)), host_(std::move(host)), running_(host_.parts.size()) {}

  void start() {
    if (host_.parts.empty()) {
      return complete(nullptr);
    }
    auto self = c10::intrusive_ptr<CollectiveWork>::reclaim_copy(this);
    for (const WorkPtr& part : host_.parts) {
      part->getFuture()->addCallback([self](Future& future) { self->part_ended(future); });
    }
  }

 private:
  void part_ended(Future& future) {
    if (future.hasError()) {
      std::lock_guard<std::mutex> guard(error_lock_);
      error_ = future.exception_ptr();
    }
    if (--running_ == 0) {
      complete(error_ ? error_ : do_the_rest());
    }
  }

  std::exception_ptr do_the_rest() {
    try {
      HostOnly host_only;
      for (const auto& step : host_.afterwards) {
        step();
      }
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  HostWork host_;
  std::atomic<size_t> running_;
  std::mutex error_lock_;
  std::exception_ptr error_;
};

// Who asks first does the waiting, for all others.
class WaitedWork final : public DeviceWork {
 public:
  WaitedWork(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, std::vector<WorkPtr> parts)
      : DeviceWork(rank, type, std::move(outputs)), parts_(std::move(parts)) {}

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) {
    if (!taken_.exchange(true)) {
      wait_for_parts(timeout);
    }
    return DeviceWork::wait(timeout);
  }

  bool isCompleted() {
    wait_aside();
    return DeviceWork::isCompleted();
  }

  c10::intrusive_ptr<Future> getFuture() {
    wait_aside();
    return DeviceWork::getFuture();
  }

  int sourceRank() const {
    return parts_.front()->sourceRank();
  }

 private:
  void wait_aside() {
    if (!taken_.exchange(true)) {
      auto self = c10::intrusive_ptr<WaitedWork>::reclaim_copy(this);
      std::thread([self] { self->wait_for_parts(kNoTimeout); }).detach();
    }
  }

  void wait_for_parts(std::chrono::milliseconds timeout) {
    std::exception_ptr error;
    try {
      for (const WorkPtr& part : parts_) {
        part->wait(timeout);
      }
    } catch (...) {
      error = std::current_exception();
    }
    complete(error);
  }

  std::vector<WorkPtr> parts_;
  std::atomic<bool> taken_{false};
};

} // namespace

void HostWork::add(HostWork other) {
  std::move(other.parts.begin(), other.parts.end(), std::back_inserter(parts));
  std::move(other.afterwards.begin(), other.afterwards.end(), std::back_inserter(afterwards));
}

WorkPtr collective_work(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, HostWork host) {
  auto work = c10::make_intrusive<CollectiveWork>(rank, type, std::move(outputs), std::move(host));
  work->start();
  return work;
}

WorkPtr waited_work(int rank, c10d::OpType type, std::vector<at::Tensor> outputs, std::vector<WorkPtr> parts) {
  return c10::make_intrusive<WaitedWork>(rank, type, std::move(outputs), std::move(parts));
}

} // namespace ferry

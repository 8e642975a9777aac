// Lets DistributedDataParallel keep its time statistics on the device. Work is done when it is issued, so the host's
// clock tells the device's time.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <optional>

namespace ferry {
namespace {

class HostClock final : public c10d::Timer {
 public:
  explicit HostClock(c10::Device) {}

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto begun = getTimestamp(start);
    const auto ended = getTimestamp(end);
    if (!begun.has_value() || !ended.has_value() || *ended < *begun) {
      return std::nullopt; // a backward pass without a bucket, or statistics asked for in the middle of a step
    }
    return *ended - *begun;
  }
};

} // namespace
} // namespace ferry

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kPrivateUse1, ferry::HostClock)
} // namespace c10d

// Lets torch.profiler time the device. Work is done when it is issued, so an event is a reading of the clock.
#include "device.h"

#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace ferry {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

struct Stubs final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    if (device != nullptr) {
      *device = current_device();
    }
    auto now = std::make_shared<int64_t>(c10::getTime());
    if (cpu_ns != nullptr) {
      *cpu_ns = *now;
    }
    *event = std::move(now);
  }

  float elapsed(const ProfilerVoidEventStub* from, const ProfilerVoidEventStub* to) const override {
    constexpr float kMicroseconds = 1e-3F;
    const auto span = *static_cast<int64_t*>(to->get()) - *static_cast<int64_t*>(from->get());
    return static_cast<float>(span) * kMicroseconds;
  }

  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}

  bool enabled() const override {
    return true;
  }

  void onEachDevice(std::function<void(int)> visit) const override {
    for (int device = 0; device < device_count(); ++device) {
      visit(device);
    }
  }

  void synchronize() const override {}
};

struct Register {
  Register() {
    static Stubs stubs;
    torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  }
} register_stubs;

} // namespace
} // namespace ferry

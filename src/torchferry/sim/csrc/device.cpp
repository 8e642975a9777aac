#include "device.h"

#include "memory.h"
#include "pinning.h"
#include "visible_devices.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "generator.h"

#include <array>
#include <atomic>
#include <chrono>

namespace ferry {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;
using c10::StreamId;

thread_local DeviceIndex current = 0;
thread_local std::array<StreamId, kMaxDevices> current_streams{};
std::atomic<StreamId> streams_made{0};

// Work is done when it is issued, so an event is the time at which it was recorded.
struct Event {
  std::chrono::steady_clock::time_point recorded;
};

Stream stream_of(DeviceIndex device, StreamId id) {
  return Stream(Stream::UNSAFE, Device(DeviceType::PrivateUse1, device), id);
}

DeviceIndex index_or_current(Device device) {
  return device.has_index() ? device.index() : current;
}

// Which functions are virtual changes between releases of PyTorch; without `override` the same source fits all.
struct GuardImpl final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const {
    return DeviceType::PrivateUse1;
  }

  Device exchangeDevice(Device device) const {
    const DeviceIndex before = current;
    set_current_device(device.index());
    return Device(DeviceType::PrivateUse1, before);
  }

  Device getDevice() const {
    return Device(DeviceType::PrivateUse1, current);
  }

  void setDevice(Device device) const {
    set_current_device(device.index());
  }

  void uncheckedSetDevice(Device device) const noexcept {
    current = device.index();
  }

  Stream getStream(Device device) const noexcept {
    const DeviceIndex index = index_or_current(device);
    return stream_of(index, current_streams[index]);
  }

  Stream getDefaultStream(Device device) const {
    return stream_of(index_or_current(device), 0);
  }

  Stream getStreamFromGlobalPool(Device device, bool = false) const {
    return getNewStream(device);
  }

  Stream getNewStream(Device device, int = 0) const {
    return stream_of(index_or_current(device), ++streams_made);
  }

  Stream exchangeStream(Stream stream) const noexcept {
    const DeviceIndex index = stream.device_index();
    const StreamId before = current_streams[index];
    current_streams[index] = stream.id();
    return stream_of(index, before);
  }

  void destroyEvent(void* event, const DeviceIndex) const noexcept {
    delete static_cast<Event*>(event);
  }

  void record(void** event, const Stream& stream, const DeviceIndex device, const c10::EventFlag) const {
    TORCH_CHECK(
        device == -1 || device == stream.device_index(),
        "Event device index ", device, " does not match recording stream's device index ", stream.device_index(), ".");
    if (*event == nullptr) {
      *event = new Event();
    }
    static_cast<Event*>(*event)->recorded = std::chrono::steady_clock::now();
  }

  void block(void*, const Stream&) const {}

  bool queryEvent(void*) const {
    return true;
  }

  void synchronizeEvent(void*) const {}

  double elapsedTime(void* from, void* to, const DeviceIndex) const {
    TORCH_CHECK(from && to, "Both events must be recorded before calculating elapsed time.");
    const auto span = static_cast<Event*>(to)->recorded - static_cast<Event*>(from)->recorded;
    return std::chrono::duration<double, std::milli>(span).count();
  }

  DeviceIndex deviceCount() const noexcept {
    return device_count();
  }

#if __has_include(<c10/core/DeviceCapability.h>)
  c10::DeviceCapability getDeviceCapability(Device) const {
    return c10::DeviceCapability();
  }
#endif

  bool queryStream(const Stream&) const {
    return true;
  }

  void synchronizeStream(const Stream&) const {}

  void synchronizeDevice(const DeviceIndex) const {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const {
    return true;
  }

  bool isAvailable() const {
    return device_count() > 0;
  }

  void init() const {}

  bool hasPrimaryContext(DeviceIndex) const {
    return true;
  }

  // Constant in some releases only: the one that matches overrides.
  const at::Generator& getDefaultGenerator(DeviceIndex device) const {
    return default_generator(device);
  }

  const at::Generator& getDefaultGenerator(DeviceIndex device) {
    return default_generator(device);
  }

  at::Generator getNewGenerator(DeviceIndex device = -1) const {
    return make_generator(device);
  }

  DeviceIndex deviceCount() const {
    return device_count();
  }

  void setCurrentDevice(DeviceIndex device) const {
    set_current_device(device);
  }

  DeviceIndex getCurrentDevice() const {
    return current;
  }

  DeviceIndex exchangeDevice(DeviceIndex device) const {
    const DeviceIndex before = current;
    set_current_device(device);
    return before;
  }

  DeviceIndex maybeExchangeDevice(DeviceIndex device) const {
    return device < 0 ? current : exchangeDevice(device);
  }

  bool isPinnedPtr(const void* pointer) const {
    return is_pinned(pointer);
  }

  c10::Allocator* getPinnedMemoryAllocator() const {
    return pinned_allocator();
  }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const {
    resize_storage(storage, bytes);
  }
};

struct RegisterHooks {
  RegisterHooks() {
    at::RegisterPrivateUse1HooksInterface(new Hooks());
  }
} register_hooks;

} // namespace

DeviceIndex device_count() {
  return static_cast<DeviceIndex>(visible_devices());
}

DeviceIndex current_device() {
  return current;
}

void check_device_index(int64_t device) {
  const int devices = visible_devices();
  TORCH_CHECK(devices > 0, "no device is visible to this process");
  TORCH_CHECK(
      device >= 0 && device < devices,
      "invalid device ordinal: ", device, "; there are ", devices, " devices (0 to ", devices - 1, ")");
}

void set_current_device(DeviceIndex device) {
  begin_use();
  check_device_index(device);
  current = device;
}

} // namespace ferry

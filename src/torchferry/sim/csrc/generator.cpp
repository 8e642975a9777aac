#include "generator.h"

#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <torch/version.h>

#include <array>
#include <atomic>
#include <mutex>

namespace ferry {
namespace {

struct DeviceGenerator final : c10::GeneratorImpl {
  DeviceGenerator(c10::DeviceIndex device, at::Generator host)
      : c10::GeneratorImpl(
            c10::Device(c10::DeviceType::PrivateUse1, device),
            c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(std::move(host)) {}

  static c10::DeviceType device_type() {
    return c10::DeviceType::PrivateUse1;
  }

  void set_current_seed(uint64_t seed) override {
    const auto guard = lock();
    host.set_current_seed(seed);
  }

  // Generators of devices count what they have drawn; the host's keeps everything in its state.
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset == 0, "The generator of the simulated device has no offset: use get_state() and set_state().");
  }

  uint64_t get_offset() const override {
    return 0;
  }

  uint64_t current_seed() const override {
    const auto guard = lock();
    return host.current_seed();
  }

  uint64_t seed() override {
    const auto guard = lock();
    return host.seed();
  }

  void set_state(const c10::TensorImpl& state) override {
    const auto guard = lock();
    host.unsafeGetGeneratorImpl()->set_state(state);
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto guard = lock();
    return host.unsafeGetGeneratorImpl()->get_state();
  }

  DeviceGenerator* clone_impl() const override {
    const auto guard = lock();
    return new DeviceGenerator(device().index(), host.clone());
  }

  // Callers hold this generator's lock; the host's may be drawn from under its own.
  std::unique_lock<std::mutex> lock() const {
    return std::unique_lock<std::mutex>(host.unsafeGetGeneratorImpl()->mutex_);
  }

  at::Generator host;
};

std::atomic<bool> is_shared{false};

at::Generator make_default_generator(c10::DeviceIndex device) {
  if (is_shared) {
    return at::make_generator<DeviceGenerator>(device, at::detail::getDefaultCPUGenerator());
  }
  at::Generator own = make_generator(device);
  own.seed();
  return own;
}

// Later releases ask the hooks instead, and warn about this.
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 8
REGISTER_GENERATOR_PRIVATEUSE1(make_generator);
#endif

} // namespace

void share_randomness(bool shared) {
  is_shared = shared;
}

at::Generator make_generator(c10::DeviceIndex device) {
  const auto index = device < 0 ? current_device() : device;
  return at::make_generator<DeviceGenerator>(index, at::detail::createCPUGenerator());
}

const at::Generator& default_generator(c10::DeviceIndex device) {
  static std::mutex lock;
  static std::array<at::Generator, kMaxDevices> generators;
  const auto index = device < 0 ? current_device() : device;
  check_device_index(index);
  std::lock_guard<std::mutex> guard(lock);
  if (!generators[index].defined()) {
    generators[index] = make_default_generator(index);
  }
  return generators[index];
}

at::Generator host_generator(const at::Generator& device_generator) {
  TORCH_CHECK(
      device_generator.device().type() == c10::DeviceType::PrivateUse1,
      "Expected a '", c10::DeviceTypeName(c10::DeviceType::PrivateUse1, true),
      "' device type for generator but found '", device_generator.device().type(), "'");
  return static_cast<DeviceGenerator*>(device_generator.unsafeGetGeneratorImpl())->host;
}

LendEngine::LendEngine(c10::DeviceIndex device) : device_(host_generator(default_generator(device))) {
  exchange();
}

LendEngine::~LendEngine() {
  exchange();
}

void LendEngine::exchange() {
  if (device_ == at::detail::getDefaultCPUGenerator()) {
    return; // shared: there is one sequence
  }
  auto* own = at::check_generator<at::CPUGeneratorImpl>(device_);
  auto* process_wide = at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  std::scoped_lock guard(own->mutex_, process_wide->mutex_);
  const at::mt19937 engine = own->engine();
  const auto normal = own->next_float_normal_sample();
  const auto double_normal = own->next_double_normal_sample();
  own->set_engine(process_wide->engine());
  own->set_next_float_normal_sample(process_wide->next_float_normal_sample());
  own->set_next_double_normal_sample(process_wide->next_double_normal_sample());
  process_wide->set_engine(engine);
  process_wide->set_next_float_normal_sample(normal);
  process_wide->set_next_double_normal_sample(double_normal);
}

} // namespace ferry

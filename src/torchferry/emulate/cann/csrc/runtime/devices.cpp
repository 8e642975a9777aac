#include "devices.h"

#include "stream.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace cann {
namespace {

constexpr int kMostDevices = 64;
constexpr int kNone = -1;
constexpr const char* kVersion = "9.1.0"; // the plugin takes what is newest where it asks

struct Machine {
  int devices = 8;
  uint64_t memory = uint64_t{64} << 30;
  std::string chip = "Ascend910B2";
};

Machine& machine() {
  static auto* one = new Machine;
  return *one;
}

struct Device {
  std::mutex mutex;
  std::atomic<DeviceMemory*> memory{nullptr};
};

std::array<Device, kMostDevices>& devices() {
  static auto* all = new std::array<Device, kMostDevices>;
  return *all;
}

thread_local int chosen = kNone;

void check_device(int device) {
  if (device < 0 || device >= device_count()) {
    set_error(
        "EE1001",
        "The argument is invalid. Reason: Set device failed, invalid device. The valid device range is [0, " +
            std::to_string(device_count()) + "), the device is " + std::to_string(device) + ".");
    throw Failure(ACL_ERROR_RT_INVALID_DEVICEID, aclGetRecentErrMsg());
  }
}

int chosen_device() {
  if (chosen == kNone) {
    throw Failure(ACL_ERROR_RT_CONTEXT_NULL, "no device was set on this thread");
  }
  return chosen;
}

// A context is known by its address alone.
std::array<char, kMostDevices> contexts;

} // namespace

int device_count() {
  return machine().devices;
}

uint64_t memory_limit() {
  return machine().memory;
}

int current_device() {
  return chosen == kNone ? 0 : chosen;
}

DeviceMemory& memory_of(int device) {
  Device& one = devices().at(static_cast<size_t>(device));
  if (one.memory == nullptr) {
    const std::lock_guard lock(one.mutex);
    if (one.memory == nullptr) {
      one.memory = new DeviceMemory(machine().memory);
    }
  }
  return *one.memory;
}

bool is_in_use(int device) {
  return devices().at(static_cast<size_t>(device)).memory != nullptr;
}

} // namespace cann

using cann::guarded;

extern "C" {

// Before anything else: the machine to emulate.
void torchferry_configure(int devices, uint64_t memory_of_each, const char* chip) {
  cann::machine() = {devices, memory_of_each, chip};
  std::atexit(cann::finish_all_streams);
}

// Bytes, as the driver counts them: what the plugin's allocator holds, not what tensors use.
void torchferry_memory(int device, uint64_t* used, uint64_t* peak) {
  const bool in_use = cann::is_in_use(device);
  *used = in_use ? cann::memory_of(device).used() : 0;
  *peak = in_use ? cann::memory_of(device).peak() : 0;
}

aclError aclInit(const char*) {
  return ACL_SUCCESS;
}

aclError aclFinalize() {
  cann::finish_all_streams();
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = static_cast<uint32_t>(cann::device_count());
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t device) {
  return guarded([&] {
    cann::check_device(device);
    cann::chosen = device;
  });
}

aclError aclrtGetDevice(int32_t* device) {
  return guarded([&] { *device = cann::chosen_device(); });
}

aclError aclrtResetDevice(int32_t) {
  return ACL_SUCCESS;
}

aclError aclrtResetDeviceForce(int32_t) {
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t device, uint32_t* flags, int32_t* active) {
  return guarded([&] {
    cann::check_device(device);
    if (flags != nullptr) {
      *flags = 0;
    }
    *active = cann::is_in_use(device) ? 1 : 0;
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return guarded([&] { *context = &cann::contexts[static_cast<size_t>(cann::chosen_device())]; });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return guarded([&] {
    const auto device = static_cast<char*>(context) - cann::contexts.data();
    cann::check_device(static_cast<int>(device));
    cann::chosen = static_cast<int>(device);
  });
}

const char* aclrtGetSocName() {
  return cann::machine().chip.c_str();
}

aclError aclsysGetCANNVersion(aclCANNPackageName, aclCANNPackageVersion* version) {
  *version = {};
  strcpy(version->version, cann::kVersion);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char*, char* version) {
  strcpy(version, cann::kVersion);
  return ACL_SUCCESS;
}

aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t device, int32_t peer) {
  return guarded([&] {
    cann::check_device(device);
    cann::check_device(peer);
    *can = device != peer ? 1 : 0;
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peer, uint32_t) {
  return guarded([&] { cann::check_device(peer); });
}

aclError aclrtDeviceGetBareTgid(int32_t* process) {
  *process = getpid();
  return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t user, int32_t* const logical) {
  *logical = user;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceUtilizationRate(int32_t, aclrtUtilizationInfo* rate) {
  *rate = {};
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetUuid(int32_t device, aclrtUuid* uuid) {
  *uuid = {};
  memcpy(uuid, &device, sizeof(device));
  return ACL_SUCCESS;
}

} // extern "C"

// The functions with which the plugin steers the profiler.
#include "recording.h"
#include "session.h"

#include <acl/acl.h>
#include <acl/acl_prof.h>

#include <cstring>
#include <exception>

struct aclprofConfig {
  cann::ProfileConfig wanted;
};

struct aclprofStepInfo {};

namespace cann {
namespace {

struct Profiler {
  std::mutex mutex;
  std::string folder;
  bool is_ready = false; // between aclprofInit and aclprofFinalize
  std::shared_ptr<Session> session;
};

Profiler& profiler() {
  static auto* one = new Profiler;
  return *one;
}

void expect_ready() {
  if (!profiler().is_ready) {
    throw Failure(ACL_ERROR_PROF_NOT_RUN, "the profiler has not been initialized");
  }
}

void start(const ProfileConfig& config) {
  const std::lock_guard lock(profiler().mutex);
  expect_ready();
  if (profiler().session != nullptr) {
    throw Failure(ACL_ERROR_PROF_ALREADY_RUN, "the profiler is on already");
  }
  profiler().session = std::make_shared<Session>(config);
  record_into(profiler().session);
}

void stop() {
  const std::lock_guard lock(profiler().mutex);
  expect_ready();
  if (profiler().session == nullptr) {
    throw Failure(ACL_ERROR_PROF_NOT_RUN, "the profiler is not on");
  }
  record_into(nullptr);
  const auto session = std::exchange(profiler().session, nullptr);
  try {
    session->write(profiler().folder);
  } catch (const std::exception& error) {
    throw Failure(ACL_ERROR_PROFILING_FAILURE, "the profile can't be written: " + std::string(error.what()));
  }
}

// As the plugin reads it: it has virtual functions there, of which it calls none.
struct Feature {
  void* not_used = nullptr;
  char name[64] = "";
  void* not_used_either = nullptr;
  char compatibility[16] = "0";
  char version[16] = "1";
  char component[16] = "all";
  char component_version[16] = "all";
  char log[128] = "emulated";
};

Feature feature(const char* name) {
  Feature made;
  strncpy(made.name, name, sizeof(made.name) - 1);
  return made;
}

} // namespace
} // namespace cann

using cann::guarded;

extern "C" {

aclError aclprofInit(const char* folder, size_t length) {
  return guarded([&] {
    const std::lock_guard lock(cann::profiler().mutex);
    cann::profiler().folder.assign(folder, length);
    cann::profiler().is_ready = true;
  });
}

aclError aclprofFinalize() {
  return guarded([] {
    const std::lock_guard lock(cann::profiler().mutex);
    cann::expect_ready();
    cann::profiler().is_ready = false;
    cann::profiler().session = nullptr;
    cann::record_into(nullptr);
  });
}

aclprofConfig* aclprofCreateConfig(uint32_t* devices, uint32_t count, aclprofAicoreMetrics, const aclprofAicoreEvents*, uint64_t data_types) {
  return new aclprofConfig{{{devices, devices + count}, data_types}};
}

aclError aclprofDestroyConfig(const aclprofConfig* config) {
  delete config;
  return ACL_SUCCESS;
}

// Rates at which hardware is sampled that is not there.
aclError aclprofSetConfig(aclprofConfigType, const char*, size_t) {
  return ACL_SUCCESS;
}

aclError aclprofWarmup(const aclprofConfig*) {
  return ACL_SUCCESS;
}

aclError aclprofStart(const aclprofConfig* config) {
  return guarded([&] { cann::start(config->wanted); });
}

aclError aclprofStop(const aclprofConfig*) {
  return guarded([] { cann::stop(); });
}

aclError aclprofRegisterDeviceCallback() {
  return ACL_SUCCESS;
}

aclError aclprofGetSupportedFeatures(size_t* count, void** features) {
  static cann::Feature known[] = {cann::feature("ATTR"), cann::feature("MemoryAccess"), cann::feature("AICORE_SHAPE")};
  *count = std::size(known);
  *features = known;
  return ACL_SUCCESS;
}

aclError aclprofGetSupportedFeaturesV2(size_t* count, void** features) {
  return aclprofGetSupportedFeatures(count, features);
}

aclError aclprofMarkEx(const char* message, size_t length, aclrtStream stream) {
  return guarded([&] {
    const cann::Call call("aclprofMarkEx");
    cann::Stream& marked = cann::stream_of(stream);
    marked.push(cann::told_to_profiler(marked, [&] { return cann::Task{"MARKER", {message, length}, ""}; }, [] {}));
  });
}

// Steps are the business of graphs that the toolkit runs by itself.
aclprofStepInfo* aclprofCreateStepInfo() {
  return new aclprofStepInfo;
}

void aclprofDestroyStepInfo(aclprofStepInfo* step) {
  delete step;
}

aclError aclprofGetStepTimestamp(aclprofStepInfo*, aclprofStepTag, aclrtStream) {
  return ACL_SUCCESS;
}

} // extern "C"

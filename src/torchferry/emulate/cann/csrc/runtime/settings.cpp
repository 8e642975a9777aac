// Settings of the toolkit that the plugin sets and asks for.
#include "devices.h"
#include "stream.h"

#include <acl/acl_op_compiler.h>

#include <cstring>
#include <map>
#include <string>

namespace {

struct Settings {
  std::mutex mutex;
  std::map<int, std::string> compiler;
  std::map<int, int64_t> parameters;
  std::map<void*, uint32_t> overflow_switches;
  aclrtFloatOverflowMode saturation = ACL_RT_OVERFLOW_MODE_INFNAN;
};

Settings& settings() {
  static auto* all = new Settings;
  return *all;
}

constexpr uint32_t kCubeCores = 24; // of an Ascend910B2
constexpr uint32_t kVectorCores = 48;

std::string compiler_option(int option) {
  const std::lock_guard lock(settings().mutex);
  const auto found = settings().compiler.find(option);
  return found == settings().compiler.end() ? "disable" : found->second;
}

uint32_t cores(int kind) {
  return kind == ACL_RT_DEV_RES_VECTOR_CORE ? kVectorCores : kCubeCores;
}

} // namespace

extern "C" {

// The plugin compiles operators itself, the old way, where this says anything but "disable".
aclError aclGetCompileopt(aclCompileOpt option, char* value, size_t room) {
  const std::string text = option == ACL_OP_JIT_COMPILE ? "disable" : compiler_option(option);
  if (text.size() >= room) {
    return ACL_ERROR_INVALID_PARAM;
  }
  strcpy(value, text.c_str());
  return ACL_SUCCESS;
}

size_t aclGetCompileoptSize(aclCompileOpt option) {
  return compiler_option(option).size() + 1;
}

aclError aclSetCompileopt(aclCompileOpt option, const char* value) {
  const std::lock_guard lock(settings().mutex);
  settings().compiler[option] = value;
  return ACL_SUCCESS;
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  const std::lock_guard lock(settings().mutex);
  settings().parameters[option] = value;
  return ACL_SUCCESS;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt option, int64_t value) {
  return aclrtCtxSetSysParamOpt(option, value);
}

aclError aclrtGetSysParamOpt(aclSysParamOpt option, int64_t* value) {
  const std::lock_guard lock(settings().mutex);
  *value = settings().parameters[option]; // 0 until somebody sets it
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  const std::lock_guard lock(settings().mutex);
  settings().saturation = mode;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  const std::lock_guard lock(settings().mutex);
  *mode = settings().saturation;
  return ACL_SUCCESS;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  const std::lock_guard lock(settings().mutex);
  settings().overflow_switches[stream] = flag;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  const std::lock_guard lock(settings().mutex);
  *flag = settings().overflow_switches[stream];
  return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream, uint64_t) {
  return ACL_SUCCESS;
}

aclError aclrtSetStreamAttribute(aclrtStream, aclrtStreamAttr, aclrtStreamAttrValue*) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpWaitTimeout(uint32_t) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOut(uint32_t) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actual) {
  *actual = timeout;
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceInfo(uint32_t, aclrtDevAttr attribute, int64_t* value) {
  switch (attribute) {
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      *value = kCubeCores;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = kVectorCores;
      return ACL_SUCCESS;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = static_cast<int64_t>(cann::memory_limit());
      return ACL_SUCCESS;
    default:
      cann::set_error("aclrtGetDeviceInfo: the emulated device does not know its attribute " + std::to_string(attribute));
      return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
  }
}

aclError aclrtGetDeviceResLimit(int32_t, aclrtDevResLimitType kind, uint32_t* value) {
  *value = cores(kind);
  return ACL_SUCCESS;
}

aclError aclrtGetStreamResLimit(aclrtStream, aclrtDevResLimitType kind, uint32_t* value) {
  *value = cores(kind);
  return ACL_SUCCESS;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType kind, uint32_t* value) {
  *value = cores(kind);
  return ACL_SUCCESS;
}

aclError aclrtCmoAsync(void*, size_t, aclrtCmoType, aclrtStream) {
  return ACL_SUCCESS; // a hint
}

aclError aclmdlInitDump() {
  return ACL_SUCCESS;
}

aclError aclmdlSetDump(const char*) {
  return ACL_SUCCESS;
}

aclError aclmdlFinalizeDump() {
  return ACL_SUCCESS;
}

void aclAppLog(aclLogLevel, const char*, const char*, uint32_t, const char*, ...) {}

aclError aclGetCannAttribute(aclCannAttr, int32_t* value) {
  *value = 1;
  return ACL_SUCCESS;
}

aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo, int64_t* value) {
  *value = kCubeCores;
  return ACL_SUCCESS;
}

} // extern "C"

// What the plugin reports to the toolkit's profiler: only programs that its compiler has made do.
#include "session.h"

#include <cstddef>
#include <cstdint>

extern "C" {

uint64_t MsprofGetHashId(const char*, size_t) {
  return 0;
}

int32_t MsprofRegisterCallback(uint32_t, void*) {
  return 0;
}

int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) {
  return 0;
}

int32_t MsprofReportApi(uint32_t, const void*) {
  return 0;
}

int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) {
  return 0;
}

uint64_t MsprofSysCycleTime() {
  return cann::now();
}

} // extern "C"

#include "error.h"

#include <acl/acl.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <utility>

namespace cann {
namespace {

thread_local std::string recent;
thread_local std::string handed_out; // lives until this thread asks again
thread_local int last_code = 0;

std::string now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  const time_t seconds = static_cast<time_t>(micros / 1000000);
  tm parts{};
  localtime_r(&seconds, &parts);
  char text[40];
  const size_t length = strftime(text, sizeof(text), "%Y-%m-%d-%H:%M:%S", &parts);
  char fraction[16];
  snprintf(fraction, sizeof(fraction), ".%03d.%03d", static_cast<int>(micros / 1000 % 1000), static_cast<int>(micros % 1000));
  return std::string(text, length) + fraction;
}

} // namespace

void set_error(std::string message) {
  recent = std::move(message);
}

std::string headed(const char* error_code, const std::string& message) {
  return "[PID: " + std::to_string(getpid()) + "] " + now() + " " + error_code + ": " + message;
}

void set_error(const char* error_code, const std::string& message) {
  set_error(headed(error_code, message));
}

int told(const Failure& failure) {
  recent = failure.what();
  last_code = failure.code;
  return failure.code;
}

} // namespace cann

extern "C" {

const char* aclGetRecentErrMsg() {
  cann::handed_out = std::exchange(cann::recent, {});
  return cann::handed_out.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel) {
  return cann::last_code;
}

aclError aclrtGetLastError(aclrtLastErrLevel) {
  return std::exchange(cann::last_code, 0);
}

} // extern "C"
